/*
 * The server's raw path: what saturates as integers, or a worker sends raw, is collected per worker
 * and added in rank order, floats as doubles, int32 in 64 bits.
 *
 * There are fewer rows to collect in than fragments. Invariant: the oldest fragment that wants a
 * row has one, or gets the next that is free or that a newer fragment has. So the oldest always
 * gets on.
 */
#include "core/aggregation/server_impl.h"

#include <string.h>

#include "core/aggregation/agg_key.h"

/* Buffers by rank; the fragment must have a row. */
static uint32_t *row_of(const struct gw_server *server, const struct gw_fragment *fragment)
{
    return server->raw_bufs + (size_t)fragment->raw * server->cfg.world;
}

void gw_server_raw_release(struct gw_server *server, struct gw_fragment *fragment)
{
    if (fragment->raw == GW_FRAGMENT_NO_ROW)
        return;
    uint32_t *row = row_of(server, fragment);
    for (uint32_t rank = 0; rank < server->cfg.world; rank++)
        gw_server_release_buf(server, &row[rank]);
    server->raw_free[server->raw_free_count++] = fragment->raw;
    fragment->raw = GW_FRAGMENT_NO_ROW;
}

void gw_server_raw_turn(struct gw_server *server, struct gw_fragment *fragment)
{
    fragment->state = GW_FRAGMENT_RAW;
    gw_server_release_buf(server, &fragment->buf);
    gw_rank_set_clear(&fragment->set);
    server->stats.overflowed++;
    gw_server_order_all(server, fragment->seq, GW_AGG_REQUEST | GW_AGG_RAW);
}

void gw_server_raw_invite(struct gw_server *server)
{
    for (uint32_t i = 0; i < server->positions; i++) {
        uint32_t seq = server->expected + i;
        const struct gw_fragment *fragment = gw_server_fragment(server, seq);
        if (fragment->seq == seq && fragment->state == GW_FRAGMENT_RAW &&
            fragment->raw == GW_FRAGMENT_NO_ROW) {
            gw_server_order_all(server, seq, GW_AGG_REQUEST | GW_AGG_RAW);
            return;
        }
    }
}

/*
 * Takes a row away from the newest fragment that has one, if it is newer than `fragment`; else
 * false. So the oldest always gets on, whatever the others wait for.
 */
static bool yield_raw_row(struct gw_server *server, const struct gw_fragment *fragment)
{
    uint32_t newest = fragment->seq;
    for (uint32_t i = 0; i < server->cfg.raw_max; i++)
        if ((int32_t)(server->raw_seqs[i] - newest) > 0)
            newest = server->raw_seqs[i];
    if (newest == fragment->seq)
        return false;
    struct gw_fragment *loser = gw_server_fragment(server, newest);
    gw_server_raw_release(server, loser);
    gw_rank_set_clear(&loser->set);
    server->stats.refused++;
    return true;
}

static bool claim_raw_row(struct gw_server *server, struct gw_fragment *fragment)
{
    if (fragment->raw != GW_FRAGMENT_NO_ROW)
        return true;
    if (server->raw_free_count == 0 && !yield_raw_row(server, fragment))
        return false;
    fragment->raw = server->raw_free[--server->raw_free_count];
    server->raw_seqs[fragment->raw] = fragment->seq;
    uint32_t *row = row_of(server, fragment);
    for (uint32_t rank = 0; rank < server->cfg.world; rank++)
        row[rank] = GW_BUF_NONE;
    return true;
}

/* Whether raw floats could have travelled as integers; `room` is for one worker's. */
static bool would_fit(const struct gw_server *server, const struct gw_fragment *fragment,
                      const uint32_t *row, void *room)
{
    const struct gw_kernels *kernels = server->cfg.kernels;
    const struct gw_fragment *before =
        gw_server_fragment(server, fragment->seq - server->positions);
    bool is_known =
        before->state == GW_FRAGMENT_DONE && before->seq + server->positions == fragment->seq;
    int exponent = gw_scaling_exponent(is_known ? before->scale : GW_PKT_SCALE_NONE,
                                       server->cfg.scale_exponent);
    const struct gw_scale scale = gw_scale_named(exponent, 1);
    int64_t *sum = server->wide_sum;
    memset(sum, 0, fragment->values * sizeof(*sum));
    for (uint32_t rank = 0; (rank = gw_rank_set_next(&fragment->set, rank)) < server->cfg.world;
         rank++) {
        if (!kernels->quantise[gw_agg_key_type(fragment->key)](
                room, gw_buf_bytes(gw_server_bufs(server), row[rank]), fragment->values, &scale))
            return false;
        kernels->add_wide(sum, room, fragment->values);
    }
    return kernels->narrow(room, sum, fragment->values) &&
           !kernels->is_saturated(room, fragment->values);
}

/* Adds those that have come in rank order. */
void gw_server_raw_finish(struct gw_server *server, struct gw_fragment *fragment)
{
    const struct gw_kernels *kernels = server->cfg.kernels;
    const uint32_t *row = row_of(server, fragment);
    enum gw_dtype type = gw_agg_key_type(fragment->key);
    uint32_t values = fragment->values;
    uint32_t count = gw_rank_set_count(&fragment->set), rank = 0;
    fragment->lacks = (uint16_t)(server->cfg.world - count);
    if (!gw_server_bufs(server)) {
        gw_server_finish(server, fragment, GW_BUF_NONE, GW_AGG_RAW);
        return;
    }
    uint32_t buf = gw_buf_claim(gw_server_bufs(server));
    if (buf == GW_BUF_NONE) {
        /* It stays complete: whoever sends again makes us try again. */
        server->stats.refused++;
        return;
    }
    uint8_t flags = GW_AGG_RAW;
    unsigned char *out = gw_buf_bytes(gw_server_bufs(server), buf);
    if (type == GW_DTYPE_I32) {
        int64_t *sum = server->wide_sum;
        memset(sum, 0, values * sizeof(*sum));
        for (; (rank = gw_rank_set_next(&fragment->set, rank)) < server->cfg.world; rank++)
            kernels->add_wide(sum, gw_buf_bytes(gw_server_bufs(server), row[rank]), values);
        if (!kernels->narrow(out, sum, values))
            flags |= GW_AGG_FAILED;
    } else {
        if (server->cfg.proactive)
            server->stats.needless += would_fit(server, fragment, row, out);
        memset(server->real_sum, 0, values * sizeof(*server->real_sum));
        for (; (rank = gw_rank_set_next(&fragment->set, rank)) < server->cfg.world; rank++)
            kernels->add_real[type](server->real_sum,
                                    gw_buf_bytes(gw_server_bufs(server), row[rank]), values);
        memset(out, 0, 4 * (size_t)values);
        kernels->narrow_real[type](out, server->real_sum, values,
                                   gw_agg_key_average(fragment->key) ? count : 1);
    }
    gw_server_finish(server, fragment, buf, flags);
}

void gw_server_raw_add(struct gw_server *server, struct gw_fragment *fragment, struct gw_pkt *pkt,
                       const struct gw_rank_set *from)
{
    struct gw_rank_set own = {0};
    uint32_t rank = 0;
    while (rank < server->cfg.world && !gw_rank_set_has(from, rank))
        rank++;
    gw_rank_set_add(&own, rank);
    if (!gw_rank_set_equals(from, &own)) {
        server->stats.stale++;
        return;
    }
    if (fragment->state != GW_FRAGMENT_RAW)
        gw_server_raw_turn(server, fragment);
    if (gw_rank_set_overlaps(&fragment->set, from)) {
        server->stats.overlaps++;
        if (!gw_rank_set_equals(&fragment->set, &server->contributors.everybody))
            return;
    } else if (!claim_raw_row(server, fragment)) {
        server->stats.refused++;
        return;
    } else {
        uint32_t *row = row_of(server, fragment);
        row[rank] = pkt->buf;
        pkt->buf = GW_BUF_NONE;
        server->added++;
        gw_rank_set_join(&fragment->set, from);
    }
    if (gw_rank_set_equals(&fragment->set, &server->contributors.everybody))
        gw_server_raw_finish(server, fragment);
}
