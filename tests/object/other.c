/* Device code in C, in a compilation unit of its own. */
static float cube(float x) { return x * x * x; }

__attribute__((amdgpu_kernel)) void scale(float *a, float s) {
  int i = __builtin_amdgcn_workitem_id_x();
  float sum = 0;
#pragma unroll 4
  for (int k = 0; k < 16; ++k)
    sum += cube(a[i * 16 + k]) * s;
  a[i] = cube(sum);
}
