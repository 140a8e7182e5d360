// Needs no headers of HIP.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

__device__ static float step(float a) {
  __builtin_amdgcn_s_barrier();
  return a * a;
}

__device__ static float twice(float a) {
  return step(a) + 1.0f;
}

__global__ void kernel(float *p) {
  float a = p[0];
  a = twice(a);
  a = twice(a);
  p[1] = a;
}
