#include "kernels/isa_neoni8mm.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kNeonI8mm = table<NeonI8mm>();
}
