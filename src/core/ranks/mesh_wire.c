/* FAILURE in bytes and in a tag; see mesh_wire.h. */
#include "core/ranks/mesh_wire.h"

#include "core/job.h"
#include "wire/octets.h"

enum {
    RANK_BITS = 11, /* GW_WORLD_MAX, too */
    RANK_MASK = (1 << RANK_BITS) - 1,
    REASON_MASK = 15,
};

_Static_assert((int)GW_WORLD_MAX <= (int)RANK_MASK, "any rank, and nobody");
_Static_assert((int)GW_JOB_REASONS <= (int)REASON_MASK + 1, "any reason");

static bool makes_sense(const struct gw_mesh_failure *failure, uint32_t world)
{
    return failure->reason != GW_JOB_OK && failure->reason < GW_JOB_REASONS &&
           failure->about <= world && failure->found_by <= world;
}

void gw_mesh_failure_write(const struct gw_mesh_failure *failure,
                           uint8_t bytes[GW_MESH_FAILURE_SIZE])
{
    gw_octets_put(bytes, failure->reason, 4);
    gw_octets_put(bytes + 4, failure->about, 4);
    gw_octets_put(bytes + 8, failure->found_by, 4);
}

bool gw_mesh_failure_read(const uint8_t *bytes, uint64_t size, uint32_t world,
                          struct gw_mesh_failure *failure)
{
    *failure = (struct gw_mesh_failure){
        .reason = (uint32_t)gw_octets_get(bytes, 4),
        .about = (uint32_t)gw_octets_get(bytes + 4, 4),
        .found_by = (uint32_t)gw_octets_get(bytes + 8, 4),
    };
    return size == GW_MESH_FAILURE_SIZE && makes_sense(failure, world);
}

uint32_t gw_mesh_failure_tag(const struct gw_mesh_failure *failure)
{
    return GW_MESH_TAG_BARE | failure->reason << 2 * RANK_BITS | failure->about << RANK_BITS |
           failure->found_by;
}

bool gw_mesh_is_failure_tag(uint32_t tag)
{
    return tag - GW_MESH_TAG_BARE <=
           (REASON_MASK << 2 * RANK_BITS | RANK_MASK << RANK_BITS | RANK_MASK);
}

bool gw_mesh_failure_of_tag(uint32_t tag, uint32_t world, struct gw_mesh_failure *failure)
{
    *failure = (struct gw_mesh_failure){
        .reason = tag >> 2 * RANK_BITS & REASON_MASK,
        .about = tag >> RANK_BITS & RANK_MASK,
        .found_by = tag & RANK_MASK,
    };
    return gw_mesh_is_failure_tag(tag) && makes_sense(failure, world);
}
