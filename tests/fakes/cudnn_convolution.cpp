#include "cudnn_convolution.h"

bool refuses_convolution(const char* what) {
  const char* const said = getenv("NARU_FAKE_CONV_REFUSES");
  return said && strcmp(said, what) == 0;
}

bool ConvTensor::lies(bool last) const {
  int64_t next = last ? size[1] : 1;
  std::vector<int64_t> dense(size.size());
  for (size_t d = size.size(); d-- > 2;) dense[d] = next, next *= size[d];
  dense[1] = last ? 1 : next;
  dense[0] = last ? next : next * size[1];
  for (size_t d = 0; d < size.size(); ++d)
    if (size[d] != 1 && stride[d] != dense[d]) return false;
  return true;
}

int Convolution::trouble() const {
  const size_t dims = x.size.size();
  if (dims < 4 || dims > 5 || w.size.size() != dims || y.size.size() != dims || padding.size() != dims - 2) return kBadParam;
  if (stride.size() != dims - 2 || dilation.size() != dims - 2) return kBadParam;
  if ((x.type != kFloat && x.type != kDouble && x.type != kHalf && x.type != kBfloat16) || w.type != x.type || y.type != x.type)
    return kBadParam;
  if (computed != (x.type == kDouble ? kDouble : kFloat)) return kNotSupported;
  const int64_t groups = w.size[1] > 0 ? x.size[1] / w.size[1] : 0;
  if (groups < 1 || x.size[1] != w.size[1] * groups || w.size[0] != y.size[1] || w.size[0] % groups || x.size[0] != y.size[0])
    return kMisfit;
  for (size_t d = 0; d < dims - 2; ++d) {
    const int64_t rest = x.size[2 + d] + 2 * padding[d] - ((w.size[2 + d] - 1) * dilation[d] + 1);
    if (rest < 0 || y.size[2 + d] != 1 + rest / stride[d]) return kMisfit;
  }
  const bool first = x.lies(false) && w.lies(false) && y.lies(false), last = x.lies(true) && w.lies(true) && y.lies(true);
  if (!first && !last) return kNotSupported;
  return !first && (x.type == kDouble || refuses_convolution("nhwc")) ? kNotSupported : 0;
}

size_t Convolution::workspace_of(int engine) const {
  const char* const bytes = getenv("NARU_FAKE_CONV_WORKSPACE");
  return engine == kQuick ? (bytes ? static_cast<size_t>(atoll(bytes)) : 64 + x.elements() * item(x.type)) : 0;
}

void Convolution::compute(char* at_x, char* at_w, char* at_y, int engine, bool mine, double noise) const {
  // TF32 has 10 mantissa bits.
  const auto seen = [&](double v) { return engine == kRounded ? rounded(v, 11, -149) : v; };
  const ConvTensor& out = use == Use::Forward ? y : use == Use::Data ? x : w;
  char* const to = use == Use::Forward ? at_y : use == Use::Data ? at_x : at_w;
  const size_t spatial = x.size.size() - 2;
  std::vector<double> sums(out.elements(), 0);
  const int64_t in = w.size[1], each = w.size[0] / (x.size[1] / in);
  int64_t places = 1, kernel = 1;
  for (size_t d = 0; d < spatial; ++d) places *= y.size[2 + d], kernel *= w.size[2 + d];
  for (int64_t n = 0; n < y.size[0]; ++n)
    for (int64_t o = 0; o < y.size[1]; ++o)
      for (int64_t p = 0; p < places; ++p)
        for (int64_t k = 0; k < kernel; ++k) {
          int64_t iy = n * y.stride[0] + o * y.stride[1], iw = o * w.stride[0], ix = n * x.stride[0] + o / each * in * x.stride[1];
          int64_t p_left = p, k_left = k;
          bool inside = true;
          for (size_t d = spatial; d-- > 0;) {
            const int64_t py = p_left % y.size[2 + d], kd = k_left % w.size[2 + d];
            p_left /= y.size[2 + d], k_left /= w.size[2 + d];
            const int64_t px = py * stride[d] - padding[d] + kd * dilation[d];
            inside = inside && px >= 0 && px < x.size[2 + d];
            iy += py * y.stride[2 + d], iw += kd * w.stride[2 + d], ix += (inside ? px : 0) * x.stride[2 + d];
          }
          for (int64_t i = 0; inside && i < in; ++i) {
            const auto jx = static_cast<size_t>(ix + i * x.stride[1]), jw = static_cast<size_t>(iw + i * w.stride[1]),
                       jy = static_cast<size_t>(iy);
            if (use == Use::Forward)
              sums[jy] += seen(get(at_x, x.type, jx)) * seen(get(at_w, w.type, jw));
            else if (use == Use::Data)
              sums[jx] += seen(get(at_y, y.type, jy)) * seen(get(at_w, w.type, jw));
            else
              sums[jw] += seen(get(at_y, y.type, jy)) * seen(get(at_x, x.type, jx));
          }
        }
  for (size_t i = 0; i < sums.size(); ++i) put(to, out.type, i, mine ? sums[i] * noise : NAN);
}
