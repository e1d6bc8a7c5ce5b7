/* Trains of an overlay; see overlay.h. */
#include "net/roles/overlay.h"

uint32_t gw_overlay_train(uint32_t hdr, uint32_t payload)
{
    uint32_t fits = UINT16_MAX / (hdr + payload);
    if (fits < 1)
        return 1;
    return fits < GW_DATAPATH_TRAIN_MAX ? fits : GW_DATAPATH_TRAIN_MAX;
}
