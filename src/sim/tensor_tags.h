/*
 * For movers whose pieces are tensors of the core's workers: how many a member has under way, and
 * the tag of each, which says whose it is.
 */
#ifndef GW_SIM_TENSOR_TAGS_H
#define GW_SIM_TENSOR_TAGS_H

#include "sim/mover.h"

enum {
    GW_SIM_TENSORS_MAX = 64, /* enough that small tensors fill a window of 256 fragments */
    GW_SIM_TENSORS_MIN = 2,  /* tensors that a worker has room for */
};

static inline uint32_t gw_sim_tensor_room(const struct gw_sim *sim, const struct gw_job_spec *spec,
                                          uint32_t pieces)
{
    (void)sim;
    (void)spec;
    return pieces < GW_SIM_TENSORS_MAX ? pieces : GW_SIM_TENSORS_MAX;
}

/* What a worker's cfg asks for, with so much room. */
static inline uint32_t gw_sim_tensor_count_max(uint32_t room)
{
    return room > GW_SIM_TENSORS_MIN ? room : GW_SIM_TENSORS_MIN;
}

static inline uint64_t gw_sim_tensor_tags(const struct gw_sim *sim, const struct gw_job_spec *spec,
                                          uint32_t room)
{
    (void)sim;
    return (uint64_t)spec->worker_count * room;
}

static inline uint32_t gw_sim_tensor_tag(const struct gw_sim_job *job,
                                         const struct gw_sim_member *member, uint32_t berth)
{
    return job->first_tag + member->rank * job->room + berth;
}

/* Whose tensor a tag names, and in which berth its piece is. */
static inline struct gw_sim_member *gw_sim_tensor_owner(const struct gw_sim *sim,
                                                        const struct gw_sim_job *job, uint32_t tag,
                                                        uint32_t *berth)
{
    *berth = (tag - job->first_tag) % job->room;
    return gw_sim_member_of(sim, job->spec, (tag - job->first_tag) / job->room);
}

#endif
