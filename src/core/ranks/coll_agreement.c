/*
 * The agreement: what is missing of results at one worker is missing at all, so that all have the
 * same bytes. Each has a mask, a bit for each fragment whose result is there, and an exact
 * all-reduce by AND gives the mask that counts: in coll_parts.c, what it lacks becomes 0.
 *
 * It is held from the beginning of the call: memory for the others' masks is posted before they can
 * come, and nothing is sent before the own one is known. A mask has one bit for a packet, so what
 * it takes is no bandwidth but time: few workers send to each other, which is two hops whatever
 * their number, where a ring would make 2 (n - 1).
 *
 * What others miss is their word alone. So each worker looks whether what is missing is within its
 * own bound, and else the call fails there: with a worker that allows more, or lies. And what a
 * worker lacks itself the common mask lacks, or who said it lies.
 *
 * A worker's mask leaves when all messages with results have ended there. So when the common mask
 * is known they have ended everywhere, and nothing that leaves late can come to where the missing
 * is set to 0.
 */
#include "base/assert.h"
#include "base/error.h"
#include "core/ranks/coll_parts.h"

struct gw_coll_run_cfg gw_coll_agreement_cfg(const struct gw_coll_run_cfg *cfg)
{
    struct gw_coll_run_cfg own = *cfg;
    const struct gw_parts parts = {.bound_pull = 1};
    const struct gw_coll_call call = {.coll = gw_coll_for(GW_COLL_ALLREDUCE),
                                      .tensor = {.count = 1},
                                      .parts = &parts,
                                      .fragment = 1};
    struct gw_coll_call agreement;
    if (cfg->parts_transport) /* that of calls, which repairs what is lost as soon */
        own.transport = cfg->parts_transport;
    own.parts_transport = NULL;
    own.segment = GW_COLL_AGREEMENT_SEGMENT;
    own.lanes_max = 0;
    if (cfg->world > 1 && gw_coll_call_agrees(&call, cfg->world, &agreement))
        own.lanes_max = gw_coll_run_lanes(agreement.coll, cfg->rank, cfg->world);
    return own;
}

void gw_coll_agreement_begin(struct gw_coll_run *run, gw_time now)
{
    struct gw_coll_run_parts *parts = &run->parts;
    struct gw_coll_call agreement;
    if (!gw_coll_call_agrees(&run->call, run->cfg.world, &agreement))
        return;
    agreement.tensor.in = agreement.tensor.out = run->cfg.kernels ? parts->terms.arrived : NULL;
    agreement.tensor.tag =
        run->row.tag + run->tags - (uint32_t)gw_coll_run_tags(parts->agreement, &agreement);
    parts->agreement->cfg.class = parts->terms.class;
    int error = gw_coll_run_hold(parts->agreement, &agreement, now);
    GW_ASSERT(error == GW_OK); /* the call has tags, and the run lanes, for it */
}

/* Whether the common mask is known. */
static bool is_known(struct gw_coll_run *run, gw_time now)
{
    struct gw_coll_run *agreement = run->parts.agreement;
    if (agreement->is_held) {
        agreement->is_held = false;
        gw_coll_run_advance(agreement, now);
    }
    if (agreement->status.state == GW_COLL_RUN_FAILED)
        gw_coll_run_fail(run, agreement->status.reason, agreement->status.about);
    return gw_coll_run_is_summed(agreement);
}

/* Whether results are as they stay, but for what is missing. Who keeps his own instead, without an
 * agreement, must not change what he still passes on as no result. */
static bool is_final(struct gw_coll_run *run, gw_time now)
{
    bool is_through = gw_coll_run_is_through(run, run->applied);
    if (is_through && run->parts.agrees)
        return is_known(run, now);
    return is_through && gw_coll_run_is_through(run, run->sent) && run->sending == 0;
}

/* Who said that a fragment is there. */
static uint32_t teller_of(const struct gw_coll_run *run, uint64_t fragment)
{
    const struct gw_coll_row *row = &run->parts.agreement->row;
    const uint64_t byte = fragment / 8;
    struct gw_coll_cursor next = {0};
    struct gw_coll_message message;
    for (; gw_coll_row_next(row, GW_COLL_RECEIVED, &next, &message); next.segment++)
        if (message.merge == GW_COLL_COPY && byte - message.first < message.count)
            return message.peer;
    return run->cfg.world;
}

/* Whether the common mask has nothing that this worker lacks. Else the call fails. */
static bool is_true(struct gw_coll_run *run)
{
    uint64_t untrue = run->parts.agrees ? gw_coll_parts_untrue(run) : UINT64_MAX;
    if (untrue >= gw_coll_call_fragments(&run->call, run->cfg.world))
        return true;
    gw_coll_run_fail(run, GW_JOB_BROKEN, teller_of(run, untrue));
    return false;
}

bool gw_coll_agreement_advance(struct gw_coll_run *run, gw_time now)
{
    struct gw_coll_run_parts *parts = &run->parts;
    if (!parts->is_ended) {
        if (!is_final(run, now) || !is_true(run))
            return false;
        run->status.missing = gw_coll_parts_end(run);
        parts->is_ended = true;
        if (!gw_coll_parts_may_miss(run, run->status.missing)) {
            gw_coll_run_fail(run, GW_JOB_BOUND, run->cfg.rank);
            return false;
        }
    }
    return !parts->agrees || parts->agreement->status.state == GW_COLL_RUN_DONE;
}

uint32_t gw_coll_agreement_awaited(const struct gw_coll_run *run)
{
    const struct gw_coll_run *agreement = run->parts.agreement;
    struct gw_coll_cursor next;
    struct gw_coll_message message;
    if (!run->parts.agrees || agreement->is_held)
        return run->cfg.world;
    next = agreement->applied;
    return gw_coll_row_next(&agreement->row, GW_COLL_RECEIVED, &next, &message) ? message.peer
                                                                                : run->cfg.world;
}
