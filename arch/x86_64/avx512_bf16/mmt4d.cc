#include "ukernel/tile.h"
