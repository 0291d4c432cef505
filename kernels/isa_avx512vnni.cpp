#include "kernels/isa_avx512vnni.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kAvx512Vnni = table<Avx512Vnni>();
}
