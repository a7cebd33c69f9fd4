#include "ukernel/internal.h"
extern "C" uk_status_t uk_pack(const uk_pack_params_t*) { return UK_STATUS_NO_TILE; }
