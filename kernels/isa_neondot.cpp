#include "kernels/isa_neondot.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kNeonDot = table<NeonDot>();
}
