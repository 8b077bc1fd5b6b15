#include <naru/naru.h>

extern "C" double plugin_sum(double x, double y) { return (naru::tensor({x, y}) + 1.0).exp().sum().item<double>(); }
