#include "kernels/isa_neon.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kNeon = table<Neon>();
}
