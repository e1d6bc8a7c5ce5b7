/*
 * How long a worker computes: a model, a device and a batch make a plan.
 *
 * An iteration takes batch / (samples per second) seconds, a third of it forward and two thirds
 * backward. Within each pass a layer's share is that of its MACs, but forward at least 20 us and
 * backward at least 40 us, which is what a layer that waits for memory takes; the other layers
 * give that up in proportion, so that both passes take their times to the picosecond. Where the
 * floors alone would take more than a pass has, every layer takes the same time.
 *
 * Samples per second of the project's models come from the table of compute.c; a model without a
 * row there is scaled by MACs from the nearest one that has: the throughput in MACs per second is
 * that of its family, of ResNet-50 for a user's own table.
 */
#ifndef GW_WORKLOAD_COMPUTE_H
#define GW_WORKLOAD_COMPUTE_H

#include "base/fixed.h"
#include "workload/model/model.h"
#include "workload/model/plan.h"

enum {
    GW_PLAN_BATCH_MAX = 65536,
};

struct gw_plan_cfg {
    const char *device;  /* a name of gw_compute_devices() */
    gw_q16 images_per_s; /* of one worker; 0: as the device has it */
    uint32_t batch;      /* samples of one worker in an iteration, 1 to GW_PLAN_BATCH_MAX */
    gw_q16 compression;  /* gradients travel as this part of their bytes, from 1/16 to 1 */
};

/*
 * Makes the plan of an iteration. A tensor's bytes are rounded up to a multiple of 4. Returns 0, or
 * a negative error with a sentence in why[why_size] that begins with the member at fault.
 * gw_plan_free() takes the plan back; it does not refer to the model.
 */
int gw_plan_make(struct gw_plan *plan, const struct gw_model *model, const struct gw_plan_cfg *cfg,
                 char *why, uint32_t why_size);

/* Names of the devices, NULL ends them. On "none" computing takes no time. */
const char *const *gw_compute_devices(void);

/*
 * Samples per second of a model on a device, in Q16; 0 on "none". Returns 0, or a negative error
 * as gw_plan_make().
 */
int gw_compute_rate(gw_q16 *rate, const struct gw_model *model, const char *device, char *why,
                    uint32_t why_size);

#endif
