#include "kernels/isa_avx2.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kAvx2 = table<Avx2>();
}
