/*
 * What the coordinator says, to workers and to switches; see core/job.h for what is in the packets.
 */
#include "core/control/coordinator_impl.h"

static struct gw_pkt *make(struct gw_coordinator *co, uint32_t dst, enum gw_job_op op, uint32_t key)
{
    struct gw_pkt *pkt = gw_app_job_pkt(&co->app, dst, op);
    if (pkt) {
        pkt->key = key;
        pkt->epoch = co->epoch;
    }
    return pkt; /* NULL: the timer tries again */
}

void gw_coordinator_tell(struct gw_coordinator *co, uint32_t dst, enum gw_job_op op, uint32_t key,
                         uint16_t epoch, enum gw_job_reason reason, uint32_t about)
{
    struct gw_pkt *pkt = make(co, dst, op, key);
    if (!pkt)
        return;
    pkt->epoch = epoch;
    pkt->index = (uint16_t)reason;
    pkt->job.word[0] = about;
    gw_app_control(&co->app, pkt);
}

void gw_coordinator_tell_failed(struct gw_coordinator *co, uint32_t dst, uint32_t key,
                                uint16_t epoch)
{
    gw_coordinator_tell(co, dst, GW_JOB_FAILED, key, epoch, co->failed_reason, co->failed_about);
}

void gw_coordinator_welcome(struct gw_coordinator *co, uint32_t rank)
{
    const struct gw_seat *seat = &co->seats[rank];
    const struct gw_place *place = &co->tree.places[rank];
    struct gw_pkt *pkt = make(co, seat->address, GW_JOB_WELCOME, seat->incarnation);
    if (!pkt)
        return;
    struct gw_job_terms terms = {
        .rank = (uint16_t)rank,
        .world = co->cfg.world,
        .values = co->cfg.values,
        .aggregators = (uint16_t)(co->cfg.aggregators - 1),
        .level = place->level,
        .position = place->bitmap ? (uint8_t)__builtin_ctz(place->bitmap) : 0,
        .above = {place->above[0], place->above[1]},
        .window = (uint16_t)(co->cfg.window_max - 1),
        .indexing = (uint8_t)co->cfg.indexing,
        .hashing = (uint8_t)co->cfg.hashing,
        .notice = co->notice_units,
    };
    pkt->seq = seat->expected;
    pkt->index = co->cfg.share;
    pkt->scale = (uint8_t)co->cfg.scale_exponent;
    gw_job_terms_pack(&terms, pkt->job.word);
    gw_app_control(&co->app, pkt);
}

static void send_install(struct gw_coordinator *co, uint32_t index, uint32_t member)
{
    const struct gw_job_node *sw = &co->tree.nodes[index];
    struct gw_pkt *pkt = make(co, sw->via, GW_JOB_INSTALL, co->cfg.incarnation);
    if (!pkt)
        return;
    struct gw_job_spot spot = sw->spot;
    spot.partials = (uint8_t)co->cfg.partials;
    pkt->index = (uint16_t)member;
    pkt->seq = sw->member_count;
    pkt->job.word[0] = co->tree.members[sw->first_member + member];
    pkt->job.word[1] = gw_job_spot_pack(&spot, co->tree.workers[sw->first_member + member]);
    pkt->job.word[2] = sw->address;
    gw_app_control(&co->app, pkt);
}

void gw_coordinator_install(struct gw_coordinator *co, uint32_t index)
{
    uint32_t count = co->tree.nodes[index].member_count;
    bool knows_all = co->confirmed[index] == count;
    for (uint32_t member = 0; member < (knows_all ? 1 : count); member++)
        send_install(co, index, member);
}

void gw_coordinator_remove(struct gw_coordinator *co, uint32_t index)
{
    const struct gw_job_node *sw = &co->tree.nodes[index];
    struct gw_pkt *pkt = make(co, sw->via, GW_JOB_REMOVE, co->cfg.incarnation);
    if (!pkt)
        return;
    pkt->job.word[2] = sw->address;
    gw_app_control(&co->app, pkt);
}
