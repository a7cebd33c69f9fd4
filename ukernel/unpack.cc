#include "ukernel/internal.h"
extern "C" uk_status_t uk_unpack(const uk_unpack_params_t*) { return UK_STATUS_NO_TILE; }
