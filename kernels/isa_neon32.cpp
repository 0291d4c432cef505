#include "kernels/isa_neon32.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kNeon32 = table<Neon32>();
}
