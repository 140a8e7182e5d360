static inline float mix2(float a, float b) {
  return a * 0.25f + b * 0.75f;
}

static inline float mix3(float a, float b, float c) {
  float first = mix2(a, b);
  return mix2(first, c);
}
