/* Turns of the loop; see loop.h. */
#define _GNU_SOURCE
#include "net/station/loop_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/clock.h"
#include "wire/attach.h"

enum {
    TX_TRAINS_PER_TURN = 32,
    FRAME = 1500,    /* bytes: a larger packet is as much as several such */
    YIELD_FROM = 32, /* frames since it slept: fewer are of small calls, which wait for each one */
};

#define YIELD_DUE (30 * GW_US) /* what is due sooner is waited for */

/* Who has waited for a turn for so long: peers of ours take less, even where neighbours slow them
 * down, those who compute mostly longer. */
#define LATE (2 * GW_MS)

_Static_assert((int)GW_LOOP_FOREIGN_MAX >= (int)GW_ATTACH_SIZE_MAX, "a message fits");
_Static_assert((int)GW_DATAPATH_TRAIN_MAX <= (int)GW_BUF_LENT_MAX, "a whole train may be lent");

struct gw_loop *gw_loop_open(const struct gw_loop_cfg *cfg)
{
    struct gw_loop *loop = calloc(1, sizeof(*loop));
    if (!loop)
        return NULL;
    loop->cfg = *cfg;
    gw_time clock = gw_clock_now();
    gw_yield_init(&loop->yield, clock);
    loop->time = gw_own_time_from(clock);
    loop->arrives = malloc((cfg->peers_max + 1u) * sizeof(*loop->arrives));
    if (gw_directs_open(&loop->directs, cfg->directs_max) != GW_OK ||
        gw_directs_open(&loop->jobs, cfg->directs_max) != GW_OK ||
        gw_permits_open(&loop->permits, cfg->peers_max) != GW_OK || !loop->arrives) {
        gw_loop_close(loop);
        return NULL;
    }
    memset(loop->arrives, 0xff, (cfg->peers_max + 1u) * sizeof(*loop->arrives));
    return loop;
}

void gw_loop_close(struct gw_loop *loop)
{
    if (loop->cfg.datapath)
        gw_datapath_close(loop->cfg.datapath);
    free(loop->links);
    free(loop->ports);
    free(loop->ready);
    free(loop->arrives);
    gw_permits_close(&loop->permits);
    gw_directs_close(&loop->directs);
    gw_directs_close(&loop->jobs);
    free(loop);
}

void gw_loop_own(struct gw_loop *loop)
{
    gw_batch_policy_begin(&loop->policy);
}

void gw_loop_pause(struct gw_loop *loop)
{
    gw_batch_policy_note(&loop->policy, false);
}

gw_time gw_loop_now(struct gw_loop *loop)
{
    return gw_own_time_at(&loop->time, gw_clock_now());
}

gw_time gw_loop_time(const struct gw_loop *loop)
{
    return gw_own_time_seen(&loop->time);
}

gw_time gw_loop_away(struct gw_loop *loop, gw_time ago)
{
    return gw_loop_now(loop) - loop->time.back_at < ago ? loop->time.away : 0;
}

/* A table that grew to `count` entries; there is no way on without it. */
static void *grown(void *table, uint32_t count, size_t size)
{
    void *larger = realloc(table, count * size);
    GW_ASSERT(larger != NULL);
    return larger;
}

uint16_t gw_loop_add(struct gw_loop *loop, struct gw_node *node)
{
    GW_ASSERT(loop->node_count < GW_LOOP_NODES_MAX && loop->ready_queue.head == 0);
    uint16_t number = loop->node_count++;
    uint32_t first = loop->first_port[number], end = first + node->port_count;
    loop->nodes[number] = node;
    loop->first_port[number + 1] = end;
    loop->links = grown(loop->links, end, sizeof(*loop->links));
    loop->ports = grown(loop->ports, end, sizeof(*loop->ports));
    loop->ready = grown(loop->ready, end, sizeof(*loop->ready));
    loop->ready_queue.room = end; /* what waits stays where it is: it begins at 0 */
    for (uint32_t i = first; i < end; i++) {
        loop->links[i] = (struct gw_loop_link){.peer = GW_DIRECTS_NO_PEER, .to = GW_LOOP_PORT_NONE};
        loop->ports[i] = (struct gw_loop_port){number, (uint16_t)(i - first)};
    }
    return number;
}

static void make_ready(struct gw_loop *loop, uint32_t port)
{
    loop->ready[gw_index_queue_push(&loop->ready_queue)] = port;
}

/* Takes over what a node has reported. */
static void collect(struct gw_loop *loop, uint16_t number)
{
    struct gw_node *node = loop->nodes[number];
    for (uint16_t i = 0; i < node->ready_count; i++) {
        uint32_t port = loop->first_port[number] + node->ready[i];
        if (loop->links[port].byte_time)
            loop->links[port].since = gw_loop_time(loop);
        make_ready(loop, port);
    }
    node->ready_count = 0;
}

static void expire_due(struct gw_loop *loop, gw_time now)
{
    for (uint16_t i = 0; i < loop->node_count; i++) {
        gw_time deadline = gw_node_deadline(loop->nodes[i]);
        if (deadline != GW_TIME_NEVER && !gw_time_before(now, deadline))
            gw_node_expire(loop->nodes[i], now);
        collect(loop, i); /* also what the application's calls have made ready */
    }
}

static void deliver(struct gw_loop *loop, uint32_t port, struct gw_pkt **pkts, uint32_t count,
                    gw_time now)
{
    struct gw_loop_port at = loop->ports[port];
    gw_node_input(loop->nodes[at.node], at.port, pkts, count, now);
    collect(loop, at.node);
}

static void lose(struct gw_loop *loop, struct gw_pkt **pkts, uint32_t count)
{
    loop->stats.unlinked += count;
    for (uint32_t i = 0; i < count; i++)
        gw_pkt_release(loop->cfg.pool, pkts[i]);
}

/* Keeps datagrams of the attach protocol for the owner. */
static void take_foreign(struct gw_loop *loop, const struct gw_datapath_train *train)
{
    for (uint32_t i = 0; i < train->controls; i++) {
        struct gw_loop_foreign *foreign = &loop->foreign[loop->foreign_count++];
        memcpy(foreign->bytes, train->control + i * train->length, train->length);
        foreign->length = train->length;
        foreign->from = train->from;
    }
}

uint32_t gw_loop_take_foreign(struct gw_loop *loop, const uint8_t **bytes,
                              struct gw_sock_addr *from)
{
    if (loop->foreign_taken == loop->foreign_count)
        return 0;
    const struct gw_loop_foreign *foreign = &loop->foreign[loop->foreign_taken++];
    *bytes = foreign->bytes;
    *from = foreign->from;
    return foreign->length;
}

/* The direct way of a packet that leaves by a port, or NULL. */
static const struct gw_direct *direct_of(const struct gw_loop *loop, uint32_t port,
                                         const struct gw_pkt *pkt)
{
    const struct gw_direct *direct =
        loop->jobs.count ? gw_directs_find(&loop->jobs, pkt->flow, pkt->dst) : NULL;
    return direct ? direct : gw_directs_find(&loop->directs, port, pkt->dst);
}

/* The port at which a packet of a neighbour arrives, or GW_LOOP_PORT_NONE. */
static uint32_t way_in(const struct gw_loop *loop, uint16_t peer, const struct gw_pkt *pkt)
{
    const struct gw_direct *local =
        loop->has_locals ? direct_of(loop, GW_LOOP_PORT_NONE, pkt) : NULL;
    return local && local->to != GW_LOOP_PORT_NONE ? local->to : loop->arrives[peer];
}

static bool is_alike(const struct gw_pkt *a, const struct gw_pkt *b)
{
    return a->dst == b->dst && a->flow == b->flow;
}

/* Delivers what has come from a neighbour, which the system may have joined of several trains. */
static void take_in(struct gw_loop *loop, struct gw_datapath_train *train, gw_time now)
{
    for (uint32_t from = 0, to; from < train->count; from = to) {
        uint32_t port = way_in(loop, train->peer, train->pkts[from]);
        to = loop->has_locals ? from + 1 : train->count;
        while (to < train->count && is_alike(train->pkts[to], train->pkts[from]))
            to++;
        if (port == GW_LOOP_PORT_NONE)
            lose(loop, train->pkts + from, to - from);
        else
            deliver(loop, port, train->pkts + from, to - from, now);
    }
}

/* Takes what has arrived, for one turn. Returns trains, or GW_ERR_SYSTEM. */
static int receive(struct gw_loop *loop, gw_time now, char *error)
{
    struct gw_datapath_train train;
    int count = 0;
    if (!loop->cfg.datapath)
        return 0;
    for (; count < GW_LOOP_RX_TRAINS; now = gw_loop_now(loop)) {
        int result = gw_datapath_receive(loop->cfg.datapath, now, &train, error);
        if (result < 0)
            return result;
        if (result == 0)
            break;
        count++;
        if (train.count)
            loop->received += train.count * ((train.pkts[0]->q.size + FRAME - 1) / FRAME);
        take_foreign(loop, &train);
        gw_permits_sift(&loop->permits, &train, loop->cfg.pool);
        take_in(loop, &train, now);
    }
    return count;
}

/* Where a train leaves for: a neighbour, else a port, else nowhere. */
static struct gw_direct way_out(const struct gw_loop *loop, uint32_t port, const struct gw_pkt *pkt)
{
    const struct gw_loop_link *link = &loop->links[port];
    const struct gw_direct *direct = link->has_directs ? direct_of(loop, port, pkt) : NULL;
    return direct ? *direct : (struct gw_direct){.peer = link->peer, .to = link->to};
}

static int hand_over(struct gw_loop *loop, uint32_t port, struct gw_pkt **pkts, uint32_t count,
                     gw_time now, char *error)
{
    struct gw_loop_link *link = &loop->links[port];
    struct gw_direct way = way_out(loop, port, pkts[0]);
    if (link->byte_time) {
        gw_pacer_wait(&link->pacer, link->since);
        gw_pacer_catch_up(&link->pacer, now);
        for (uint32_t i = 0; i < count; i++)
            gw_pacer_take(&link->pacer, gw_serialisation(link->byte_time, pkts[i]->q.size));
    }
    if (way.peer != GW_DIRECTS_NO_PEER)
        return gw_datapath_send(loop->cfg.datapath, way.peer, pkts, count, error);
    if (way.to != GW_LOOP_PORT_NONE)
        deliver(loop, way.to, pkts,
                gw_pkt_settle(loop->cfg.pool, pkts, count, &loop->stats.no_room), now);
    else
        lose(loop, pkts, count);
    return GW_OK;
}

/* Whether the link may need the datapath, which has no room. */
static bool is_blocked(const struct gw_loop *loop, const struct gw_loop_link *link)
{
    bool needs_datapath = link->peer != GW_DIRECTS_NO_PEER || link->has_directs;
    return needs_datapath && !gw_datapath_can_send(loop->cfg.datapath);
}

/* Whether the port may send now: its link is free, and so is the datapath if it may need it. */
static bool is_free(const struct gw_loop *loop, uint32_t port, gw_time now)
{
    const struct gw_loop_link *link = &loop->links[port];
    return !is_blocked(loop, link) && (!link->byte_time || gw_pacer_is_free(&link->pacer, now));
}

/* Sends, port after port, one train each. Returns trains, or GW_ERR_SYSTEM. */
static int transmit(struct gw_loop *loop, char *error)
{
    int count = 0;
    uint32_t refused = 0; /* ports in a row that may not send now */
    if (loop->cfg.datapath && gw_datapath_blocked_fd(loop->cfg.datapath) >= 0) {
        int code = gw_datapath_flush(loop->cfg.datapath, error);
        if (code)
            return code;
    }
    while (count < TX_TRAINS_PER_TURN && refused < loop->ready_queue.count) {
        gw_time now = gw_loop_now(loop);
        uint32_t port = loop->ready[gw_index_queue_pop(&loop->ready_queue)];
        if (!is_free(loop, port, now)) {
            make_ready(loop, port);
            refused++;
            continue;
        }
        struct gw_loop_port at = loop->ports[port];
        struct gw_pkt *pkts[GW_DATAPATH_TRAIN_MAX];
        uint32_t result =
            gw_node_output(loop->nodes[at.node], at.port, pkts, GW_DATAPATH_TRAIN_MAX, now);
        if (result & GW_OUTPUT_MORE)
            make_ready(loop, port);
        result &= ~GW_OUTPUT_MORE;
        int code = result ? hand_over(loop, port, pkts, result, now, error) : GW_OK;
        collect(loop, at.node);
        if (code)
            return code;
        refused = 0;
        count += result != 0;
    }
    return count;
}

/* When something is to be done without an arrival or room to send. */
static gw_time wake_time(const struct gw_loop *loop)
{
    gw_time until = GW_TIME_NEVER;
    for (uint16_t i = 0; i < loop->node_count; i++) {
        gw_time deadline = gw_node_deadline(loop->nodes[i]);
        until = gw_deadline_before(deadline, until) ? deadline : until;
    }
    for (uint32_t i = 0; i < loop->ready_queue.count; i++) {
        uint32_t port = loop->ready[gw_index_queue_at(&loop->ready_queue, i)];
        const struct gw_loop_link *link = &loop->links[port];
        gw_time free_at = link->pacer.free_at;
        if (link->byte_time && !is_blocked(loop, link) && gw_deadline_before(free_at, until))
            until = free_at;
    }
    return until;
}

/* Before it would sleep for longer, amid many bytes. Returns the time. */
static gw_time yield(struct gw_loop *loop, gw_time wake)
{
    gw_time now = gw_loop_now(loop), before = loop->time.seen_at;
    bool is_amid_many = loop->received >= YIELD_FROM;
    loop->received = 0;
    if (is_amid_many && gw_deadline_before(now + YIELD_DUE, wake) &&
        !gw_yield_rests(&loop->yield, before)) {
        gw_time after = gw_yield(&loop->yield, before, LATE);
        loop->stats.yields++;
        gw_batch_policy_note(&loop->policy, after - before < LATE);
        now = gw_own_time_at(&loop->time, after);
    }
    return now;
}

/* What may be passed over in the next turn, as ppoll() says. */
static uint32_t silent_of(const struct pollfd *sources, uint32_t count)
{
    uint32_t silent = 0;
    for (uint32_t i = 0; i < count; i++)
        silent |= (uint32_t)(sources[i].revents == 0) << i;
    return silent;
}

static int rest(struct gw_loop *loop, gw_time wake, char *error)
{
    struct pollfd fds[GW_LOOP_FDS_MAX + GW_DATAPATH_FDS_MAX + 1];
    int sources[GW_DATAPATH_FDS_MAX];
    uint32_t source_count =
        loop->cfg.datapath ? gw_datapath_receive_fds(loop->cfg.datapath, sources) : 0;
    nfds_t count = 0;
    for (uint32_t i = 0; i < loop->cfg.fd_count; i++)
        fds[count++] = (struct pollfd){.fd = loop->cfg.fds[i], .events = POLLIN};
    for (uint32_t i = 0; i < source_count; i++)
        fds[count++] = (struct pollfd){.fd = sources[i], .events = POLLIN};
    if (loop->cfg.datapath && gw_datapath_blocked_fd(loop->cfg.datapath) >= 0)
        fds[count++] =
            (struct pollfd){.fd = gw_datapath_blocked_fd(loop->cfg.datapath), .events = POLLOUT};
    gw_time now = yield(loop, wake);
    /* Rounded up to whole nanoseconds, so that the deadline has passed when it returns. */
    gw_time left = wake != GW_TIME_NEVER && gw_time_before(now, wake) ? wake - now + GW_NS - 1 : 0;
    /* Who sleeps for long is to wake at once. */
    if (loop->policy.is_patient && gw_deadline_before(now + LATE, wake)) {
        wake = now + LATE;
        left = LATE;
    }
    const struct timespec timeout = gw_clock_timespec(left);
    loop->stats.sleeps++;
    int found = ppoll(fds, count, wake == GW_TIME_NEVER ? NULL : &timeout, NULL);
    if (found < 0 && errno != EINTR)
        return gw_net_fail(error, GW_ERR_SYSTEM, "cannot wait for packets: %s", strerror(errno));
    if (loop->cfg.datapath && found >= 0)
        gw_datapath_set_silent(loop->cfg.datapath,
                               silent_of(fds + loop->cfg.fd_count, source_count));
    loop->is_idle = found == 0;
    gw_time clock = gw_clock_now();
    if (clock - loop->time.seen_at >= LATE)
        gw_batch_policy_note(&loop->policy, false);
    gw_own_time_slept(&loop->time, wake == GW_TIME_NEVER ? GW_TIME_NEVER : left, clock);
    for (uint32_t i = 0; i < loop->cfg.fd_count; i++)
        loop->has_input |= fds[i].revents != 0;
    return GW_OK;
}

static bool has_events(const struct gw_loop *loop)
{
    uint32_t count = 0;
    for (uint16_t i = 0; i < loop->node_count; i++)
        count += loop->nodes[i]->event_count;
    return count != 0;
}

int gw_loop_turn(struct gw_loop *loop, gw_time until, char *error)
{
    gw_time now = gw_loop_now(loop);
    const bool looks = !loop->is_drained;
    int received = 0;
    loop->has_input = false;
    loop->foreign_count = loop->foreign_taken = 0;
    loop->is_idle = false;
    loop->due = now;
    expire_due(loop, now);
    if (looks)
        received = receive(loop, now, error);
    if (loop->cfg.datapath)
        gw_datapath_set_silent(loop->cfg.datapath, 0); /* until the loop rests again */
    if (received < 0)
        return received;
    int sent = transmit(loop, error);
    if (sent < 0)
        return sent;
    /* A datapath that was looked at until nothing came needs no second look before the loop rests.
     */
    bool is_done = received < GW_LOOP_RX_TRAINS && sent < TX_TRAINS_PER_TURN;
    bool has_more = loop->foreign_count || has_events(loop);
    loop->is_drained = looks && is_done && has_more; /* once: who leaves events lying is not deaf */
    if (!is_done || has_more)
        return GW_OK;
    loop->due = wake_time(loop);
    if (until == 0)
        return GW_OK;
    return rest(loop, gw_deadline_before(loop->due, until) ? loop->due : until, error);
}

bool gw_loop_is_idle(const struct gw_loop *loop)
{
    return loop->is_idle;
}

gw_time gw_loop_due(const struct gw_loop *loop)
{
    return loop->due;
}

bool gw_loop_has_input(const struct gw_loop *loop)
{
    return loop->has_input;
}

const struct gw_loop_stats *gw_loop_stats(const struct gw_loop *loop)
{
    return &loop->stats;
}
