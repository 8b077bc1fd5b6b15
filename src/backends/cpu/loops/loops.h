// The host loops (ir::HostLoop), one function per kind.
#pragma once

#include "ir/host_loop.h"
#include "ir/index_name.h"
#include "naru/element_type.h"

namespace naru::cpu {

// Dispatches by kind.
void run_loop(const ir::HostLoop&);

void gcds(const ir::HostLoop&);
void places(const ir::HostLoop&);
void modes(const ir::HostLoop&);
void scatter_extreme(const ir::HostLoop&);
void grid_sample(const ir::HostLoop&);
void distances(const ir::HostLoop&);
void bag_sums(const ir::HostLoop&);
void running_extremes(const ir::HostLoop&);
void triangles(const ir::HostLoop&);
void margins(const ir::HostLoop&);
void label_margins(const ir::HostLoop&);
void softmax_rows(const ir::HostLoop&);
void norm_rows(const ir::HostLoop&);
void ctc_forward(const ir::HostLoop&);
void pad(const ir::HostLoop&);
void recurrent_steps(const ir::HostLoop&);
void recurrent_gradients(const ir::HostLoop&);
void histogram(const ir::HostLoop&);

// Throws op's error unless all positions are in [0, bound).
void check_positions(const ir::HostLoop::Array& positions, int64_t bound, int dimension, ir::IndexName op);

// Calls f(T()) for the array's type if it is among Types.
template <class... Types, class F>
void with_type(DType type, F f) {
  const auto one = [&]<class T>(T zero) {
    if (type == naru::dtype_of<T>()) f(zero);
  };
  (one(Types()), ...);
}

}  // namespace naru::cpu
