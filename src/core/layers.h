/*
 * Maps the layers of a network to traffic classes (DLCP, section 3.2.2): front layers are needed
 * first by the next iteration, and lose first.
 *
 * Layers are spread evenly over the classes, so that at most one more layer is in one class than in
 * another, and a layer is never in a higher class than one before it.
 */
#ifndef GW_CORE_LAYERS_H
#define GW_CORE_LAYERS_H

#include <stdint.h>

#include "core/pkt.h"

enum {
    GW_LAYERS_CLASSES = 6,     /* classes 6 to 1, beside best effort */
    GW_LAYERS_CLASSES_MAX = 7, /* and 0, where there is no other traffic */
};

/* The class of `layer` of `layers`, counted from 0 at the front. `classes` is 1 to 7. */
static inline uint8_t gw_layers_class(uint32_t layer, uint32_t layers, uint32_t classes)
{
    return (uint8_t)(GW_CLASS_DATA_MAX - (uint64_t)layer * classes / layers);
}

#endif
