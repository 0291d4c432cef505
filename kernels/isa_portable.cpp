#include "kernels/isa_portable.h"

#include "kernels/table-inl.h"

namespace dragoman {
extern constinit const Kernels kPortable = table<Portable>();
}
