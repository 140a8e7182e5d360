#include "helpers.h"

#ifdef MOVED
#line 100
#endif
static inline float square(float x) { return x * x; }
#ifdef MOVED
#line 7
#endif

static inline float twice(float x, float y) {
  float a = square(x);
  float b = square(y + 1.0f);
  return a * b + mix3(a, b, x);
}

__attribute__((noinline)) float apart(float x) {
  return square(x) + twice(x, 3.0f);
}

kernel void add(global float *a, global const float *b, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  for (int k = 0; k < n; k += 64) {
    if (i + k < n)
      a[i + k] = twice(b[i + k], a[i]) + twice(a[i + k], 2.0f);
  }
  a[i] = apart(a[i]);
}

kernel void exchange(global float *a, local float *t) {
  int i = __builtin_amdgcn_workitem_id_x();
  t[i] = a[i];
  __builtin_amdgcn_s_barrier();
  a[i] = t[i ^ 1] + square(t[i]);
}
