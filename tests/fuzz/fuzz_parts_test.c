/*
 * Fuzz target: a communicator with calls that may lose a part, whose fellow ranks hold the key and
 * say anything by blasts: of other lengths, places and bounds than they should, again and again,
 * and what they have not heard is enough.
 *
 * The input is a program of small steps. Properties: no crash, no assertion, no memory but that of
 * calls in work is read or written (the sanitizer sees it); every call ends once, or with the job;
 * of a call that ends no more is missing than its bounds allow, and what it says of its fragments
 * agrees; deadlines move; and when the job is given up, all comes to an end.
 */
#include "fuzz/rank.h"
#include "fuzz/replay.h"
#include "support.h"

#include "base/bits.h"
#include "core/blast_hail.h"
#include "core/host/blast.h"

enum {
    WORLD = GW_TEST_WORLD,
    OWN = 1,     /* rank; ranks have the addresses 1 to WORLD */
    SERVER = 50, /* address, also of the registrar */
    MTU = 64,
    PKTS = 256,
    BATCH = 64,
    COUNT_MAX = 256,
    PLACES = 64, /* packets of a message, at the most */
    TURNS_MAX = 10000,
};

#define MEMORY_MAX ((size_t)8 << 20)
#define STALL      (2000 * GW_US)

static struct {
    uint32_t failed, broken, done, refused, sent;
    uint32_t bounded, lacking, messages; /* calls whose parts were looked at */
} reached;

struct call {
    struct gw_call said; /* number 0: none */
    struct gw_parts parts;
    uint64_t *important;
    uint64_t fragments; /* that this rank gets */
};

struct fuzz {
    struct gw_test_rank own;
    struct gw_test_steps steps;
    gw_time now;
    struct call calls[GW_COMMUNICATOR_CALLS_MAX];
    uint32_t in_work;
    uint16_t flows; /* that peers have announced */
    struct gw_test_budget budget;
    bool is_over;
};

static uint8_t take(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

static void open_fuzz(struct fuzz *f, const struct gw_transport *flows,
                      const struct gw_transport *blasts)
{
    f->budget.limit = MEMORY_MAX;
    struct gw_endpoint_cfg endpoint = gw_test_host_cfg(OWN + 1, MTU);
    endpoint.span_max = GW_SPAN_MIN; /* no message is longer, and memory is made for each run */
    endpoint.report_every = 20 * GW_US;
    endpoint.stall = STALL;
    struct gw_communicator_cfg cfg = {
        .address = OWN + 1,
        .job = 7,
        .rank = OWN,
        .world = WORLD,
        .via = take(f) & 1 ? GW_VIA_PS : GW_VIA_RING,
        .server_count = 1,
        .has_ways = true,
        .whole = 64,
        .transport = flows,
        .parts_transport = blasts,
        .mtu = MTU,
        .segment = 64,
        .flows = 2,
        .parts_segment = 8 * MTU,
        .largest = PLACES * MTU,
        .incarnation = 9,
        .worker = {.timeout = 10 * GW_US, .stall = STALL, .keeps_results = true},
        .retry = 10 * GW_US,
        .beat = 50 * GW_US,
        .stall = STALL,
        .kernels = gw_kernels_best(0),
        .allocator = gw_test_budget_allocator(&f->budget),
    };
    gw_test_rank_open(&f->own, &cfg, &endpoint, PKTS, f->now);
}

/* ---- Calls. ---- */

static void end_call(struct fuzz *f, struct call *call)
{
    free((void *)(uintptr_t)call->said.in);
    free(call->said.out);
    free(call->important);
    free(call->parts.arrived);
    free(call->parts.counts);
    *call = (struct call){.said = {.number = 0}};
    f->in_work--;
}

static void end_all(struct fuzz *f)
{
    for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++)
        if (f->calls[i].said.number)
            end_call(f, &f->calls[i]);
    f->is_over = true;
}

/* Whether the rank is told of fragments, and results may be missing, by which bound. */
static bool is_told(const struct call *call, gw_q16 *bound)
{
    switch (call->said.kind) {
    case GW_CALL_ALLREDUCE:
    case GW_CALL_BROADCAST:
    case GW_CALL_ALLGATHER:
        *bound = call->parts.bound_pull;
        return true;
    case GW_CALL_RECEIVE:
    case GW_CALL_PULL:
        *bound = call->parts.bound;
        return true;
    default:
        return false;
    }
}

/* Of a message nobody knows here how long it was: behind its end no bits are set. */
static void check_parts(const struct call *call, const struct gw_communicator_event *event)
{
    bool is_message = call->said.kind == GW_CALL_RECEIVE;
    bool is_collective = call->said.kind < GW_CALL_SEND;
    uint64_t missing = 0;
    gw_q16 bound;
    if (!is_told(call, &bound)) {
        GW_ASSERT(call->said.kind >= GW_CALL_SEND || event->missing == 0);
        return;
    }
    for (uint64_t i = 0; i < call->fragments; i++) {
        bool is_there = gw_bit_is_set(call->parts.arrived, i);
        missing += !is_there;
        GW_ASSERT(!is_collective || (call->parts.counts[i] != 0) == is_there);
        GW_ASSERT(!is_collective || call->parts.counts[i] <= WORLD);
        GW_ASSERT(is_there || call->parts.counts[i] == 0);
    }
    GW_ASSERT(is_message ? missing >= event->missing : missing == event->missing);
    GW_ASSERT(event->missing << 16 <= (uint64_t)bound * call->fragments);
    GW_ASSERT(event->bytes <= call->said.count || !is_message);
    reached.bounded++;
    reached.lacking += event->missing != 0;
    reached.messages += is_message;
}

static void take_event(struct fuzz *f, const struct gw_communicator_event *event)
{
    GW_ASSERT(!f->is_over);
    switch (event->kind) {
    case GW_COMMUNICATOR_DONE:
    case GW_COMMUNICATOR_REFUSED: {
        GW_ASSERT(event->call >= 1 && event->call <= GW_COMMUNICATOR_CALLS_MAX);
        struct call *call = &f->calls[event->call - 1];
        GW_ASSERT(call->said.number == event->call);
        reached.done += event->kind == GW_COMMUNICATOR_DONE;
        reached.refused += event->kind == GW_COMMUNICATOR_REFUSED;
        if (event->kind == GW_COMMUNICATOR_DONE && call->said.parts)
            check_parts(call, event);
        end_call(f, call);
        break;
    }
    case GW_COMMUNICATOR_FAILED:
        GW_ASSERT(event->reason && event->reason < GW_JOB_REASONS);
        reached.failed++;
        reached.broken += event->reason == GW_JOB_BROKEN || event->reason == GW_JOB_BOUND;
        end_all(f);
        break;
    case GW_COMMUNICATOR_LEFT:
        end_all(f);
        break;
    default:
        break;
    }
}

static void turn(struct fuzz *f)
{
    struct gw_communicator_event said;
    struct gw_event event;
    struct gw_node *node = gw_endpoint_node(f->own.host.endpoint);
    gw_node_expire(node, f->now);
    GW_ASSERT(gw_node_deadline(node) == GW_TIME_NEVER ||
              gw_time_before(f->now, gw_node_deadline(node)));
    while (gw_endpoint_poll(f->own.host.endpoint, &event, 1))
        gw_communicator_event(f->own.comm, &event, f->now);
    gw_communicator_expire(f->own.comm, f->now);
    for (uint32_t i = 0; gw_communicator_poll(f->own.comm, &said, f->now); i++) {
        GW_ASSERT(i < TURNS_MAX);
        take_event(f, &said);
    }
    gw_time deadline = gw_communicator_deadline(f->own.comm);
    GW_ASSERT(deadline == GW_TIME_NEVER || gw_time_before(f->now, deadline));
}

/* All ranks have come, and are reached. */
static void meet(struct fuzz *f)
{
    uint8_t bytes[GW_TEST_TABLE];
    const struct gw_path path = {
        .brtt = GW_US, .brtt_max = GW_US, .rate_bps = 1000000000, .bdp = 10000, .mtu = MTU};
    gw_test_rank_table(bytes);
    struct gw_test_steps table = {bytes, sizeof(bytes)};
    gw_communicator_set_server(f->own.comm, 0, SERVER, &path, f->now);
    turn(f);
    gw_test_deliver(f->own.host.endpoint, SERVER, GW_MESH_TAG_TABLE, sizeof(bytes), &table);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        gw_mesh_set_path(gw_communicator_mesh(f->own.comm), rank, &path);
    turn(f);
}

/* Takes memory for a call, as much as it needs. */
static void take_memory(struct call *call, uint32_t fragment)
{
    struct gw_call *said = &call->said;
    bool is_message = said->kind == GW_CALL_SEND || said->kind == GW_CALL_RECEIVE;
    size_t size = is_message ? 1 : gw_dtype_size(said->type);
    uint32_t given = said->kind == GW_CALL_REDUCE_SCATTER ? WORLD : 1;
    uint32_t got = said->kind == GW_CALL_ALLGATHER ? WORLD : 1;
    uint64_t units = (said->count + fragment - 1) / fragment;
    call->fragments = units * got;
    said->in = calloc(said->count * given, size);
    said->out = calloc(said->count * got, size);
    call->parts.arrived = calloc(gw_bit_words(call->fragments), sizeof(uint64_t));
    call->parts.counts = calloc(call->fragments, sizeof(uint16_t));
    call->important = calloc(gw_bit_words(units * given), sizeof(uint64_t));
    assert_true(said->in && said->out && call->parts.arrived && call->parts.counts &&
                call->important);
}

static void start_call(struct fuzz *f, uint8_t who)
{
    static const gw_q16 bounds[] = {0, 1, GW_Q16_ONE / 10, GW_Q16_ONE / 2};
    uint8_t what = take(f), count = take(f), terms = take(f);
    uint32_t number = 0;
    while (number < GW_COMMUNICATOR_CALLS_MAX && f->calls[number].said.number)
        number++;
    if (number == GW_COMMUNICATOR_CALLS_MAX || f->is_over)
        return;
    struct call *call = &f->calls[number];
    struct gw_call *said = &call->said;
    *said = (struct gw_call){
        .kind = (enum gw_call_kind)(who % GW_CALL_KINDS),
        .via = what % 4 ? (enum gw_via)(what % 4) : GW_VIA_RING, /* there is no server */
        .type = (enum gw_dtype)(what / 4 % GW_DTYPES),
        .op = (enum gw_op)(what / 32 % GW_OPS),
        .number = number + 1,
        .count = 1 + count % COUNT_MAX,
        .peer = who / 16 % WORLD,
        .tag = number,
        .key = who / 64,
        .parts = &call->parts,
    };
    call->parts = (struct gw_parts){
        .bound = bounds[terms & 3],
        .bound_pull = bounds[terms >> 2 & 3],
        .important_first = terms >> 4 & 1,
        .importance = (uint8_t)((terms >> 5 & 3) % GW_IMPORTANCE_RULES),
    };
    f->in_work++;
    uint32_t fragment = gw_communicator_fragment(f->own.comm, said);
    if (fragment == 0) {
        end_call(f, call);
        return;
    }
    take_memory(call, fragment);
    if (terms >> 7) {
        call->important[0] = UINT64_C(0x5555555555555555);
        call->parts.important = call->important;
    }
    if (gw_communicator_call(f->own.comm, said, f->now) != GW_OK)
        end_call(f, call);
}

/* What it wants to send has arrived, or not: only answers tell. */
static void output(struct fuzz *f)
{
    reached.sent += gw_test_rank_output(&f->own, BATCH, f->now);
}

/* ---- What fellow ranks say. ---- */

static struct gw_pkt *packet(struct fuzz *f, uint32_t from, uint32_t flow, enum gw_pkt_kind kind)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->own.host.pool);
    if (!pkt)
        return NULL;
    *pkt = (struct gw_pkt){
        .q = {.size = 100, .kind = (uint8_t)kind, .class = GW_CLASS_CONTROL},
        .src = from,
        .dst = OWN + 1,
        .flow = flow,
        .sent_at = f->now,
        .buf = GW_BUF_NONE,
    };
    return pkt;
}

static void input(struct fuzz *f, struct gw_pkt *pkt)
{
    gw_node_input(gw_endpoint_node(f->own.host.endpoint), 0, &pkt, 1, f->now);
}

struct message {
    uint32_t from, flow, tag, total, last;
    uint16_t round;
};

static void say(struct fuzz *f, const struct message *message, enum gw_hail_op op, uint32_t seq)
{
    struct gw_pkt *pkt = packet(f, message->from, message->flow, GW_PKT_HAIL);
    if (!pkt)
        return;
    pkt->hail.op = (uint8_t)op;
    pkt->seq = seq;
    if (op == GW_HAIL_RENDEZVOUS) {
        pkt->hail.number = MTU;
        pkt->index = (uint16_t)message->last;
        pkt->hail.word[0] = message->total;
        pkt->hail.word[1] = message->tag;
    }
    input(f, pkt);
}

static void send(struct fuzz *f, const struct message *message, uint32_t place, uint32_t note)
{
    struct gw_pkt *pkt = packet(f, message->from, message->flow, GW_PKT_DATA);
    if (!pkt)
        return;
    pkt->q.class = 1;
    pkt->q.flags = GW_PKT_BLAST;
    pkt->seq = place;
    pkt->data.total = message->total;
    pkt->data.mss = MTU;
    pkt->data.len = (uint16_t)(place + 1 == message->total ? message->last : MTU);
    pkt->data.tag = (uint32_t)message->round << GW_HAIL_ROUND_SHIFT | (note & UINT16_MAX);
    pkt->buf = gw_buf_claim(&f->own.host.bufs);
    if (pkt->buf != GW_BUF_NONE)
        memset(gw_buf_bytes(&f->own.host.bufs, pkt->buf), (int)note, MTU);
    input(f, pkt);
}

/* The `at`th of all memory that is posted for messages of ranks, or only for those that may lose a
 * part; or NULL. */
static const struct gw_expect *awaited(const struct fuzz *f, uint8_t at, bool any)
{
    const struct gw_endpoint *ep = f->own.host.endpoint;
    for (uint32_t i = 0; i < ep->cfg.expect_max; i++) {
        const struct gw_expect *posted = &ep->expectations[i];
        bool is_one = posted->data && posted->peer != SERVER && (any || posted->arrived);
        if (is_one && at-- == 0)
            return posted;
    }
    return NULL;
}

/* A message that fills it. */
static struct message message_for(struct fuzz *f, const struct gw_expect *posted, uint32_t index)
{
    uint32_t total = (uint32_t)((posted->bytes + MTU - 1) / MTU);
    return (struct message){
        .from = posted->peer,
        .flow = (uint32_t)f->flows++ << 16 | index,
        .tag = posted->tag,
        .total = total,
        .last = (uint32_t)(posted->bytes - (uint64_t)(total - 1) * MTU),
    };
}

/* A message that is awaited, or nearly: a part of it comes, and what follows. */
static void say_blast(struct fuzz *f, uint8_t who)
{
    const struct gw_expect *posted = awaited(f, who % 128, who >= 128);
    uint8_t shape = take(f), lacks = take(f), note = take(f);
    if (!posted || posted->bytes > PLACES * MTU)
        return;
    struct message message = message_for(f, posted, shape & 3);
    message.tag += shape >> 2 == 63;
    uint32_t bound = (uint32_t)take(f) << 8;
    if (shape >> 2 & 1 && shape >> 3 & 1) { /* of another length */
        message.total = 1 + take(f) % PLACES;
        message.last = 1 + take(f) % MTU;
    }
    say(f, &message, GW_HAIL_RENDEZVOUS, UINT32_C(1) << GW_HAIL_RTT_SHIFT | bound);
    for (uint32_t place = 0; place < message.total; place++) {
        uint32_t count = note < 128 ? 1 + (note + place * (note >> 4)) % (WORLD + 1)
                                    : (uint32_t)note << 8 | (uint8_t)(note + place);
        if (lacks == 0 || (place + 1) % lacks)
            send(f, &message, place, count);
    }
    if (shape >> 4 & 1)
        say(f, &message, GW_HAIL_STOP, message.round);
    if (shape >> 5 & 1)
        say(f, &message, GW_HAIL_CONFIRM, 0);
}

/* More of any flow that was announced. */
static void say_more(struct fuzz *f, uint8_t who)
{
    uint8_t shape = take(f), number = take(f);
    const struct gw_endpoint *ep = f->own.host.endpoint;
    const struct gw_blast_rx *blast = &ep->blasts_rx[who % ep->cfg.blasts_max];
    struct message message = {
        .from = blast->peer,
        .flow = blast->flow,
        .tag = blast->tag,
        .total = blast->total,
        .last = blast->last_len,
        .round = (uint16_t)(blast->round + (shape >> 6)),
    };
    if (blast->total == 0)
        return;
    if (shape & 1)
        send(f, &message, number, take(f));
    else
        say(f, &message,
            shape & 2 ? GW_HAIL_STOP : (shape & 4 ? GW_HAIL_CONFIRM : GW_HAIL_RENDEZVOUS),
            shape & 2 ? message.round : (uint32_t)number << 8);
}

/* What a receiver of ours says: the truth, nearly, or anything. */
static void answer(struct fuzz *f, uint8_t who)
{
    uint8_t shape = take(f), number = take(f);
    const struct gw_endpoint *ep = f->own.host.endpoint;
    const struct gw_blast_tx *blast = NULL;
    for (uint32_t i = 0, at = who; i < ep->cfg.blasts_max && !blast; i++)
        if (ep->blasts_tx[i].transport && at-- % 8 == 0)
            blast = &ep->blasts_tx[i];
    if (!blast)
        return;
    struct gw_pkt *pkt = packet(f, blast->peer, blast->id, GW_PKT_HAIL);
    if (!pkt)
        return;
    static const uint8_t ops[] = {GW_HAIL_ACCEPT, GW_HAIL_REPORT, GW_HAIL_REQUEST, GW_HAIL_FINISH};
    pkt->hail.op = ops[shape & 3];
    uint64_t bytes = blast->bytes;
    uint32_t lacks = number & 7;
    switch (pkt->hail.op) {
    case GW_HAIL_FINISH:
        bytes -= (uint64_t)lacks * MTU;
        pkt->seq = blast->total - lacks;
        pkt->hail.word[0] = (uint32_t)bytes + (number >> 7);
        pkt->hail.word[1] = (uint32_t)(bytes >> 32);
        break;
    case GW_HAIL_REQUEST:
        pkt->seq = shape >> 6 ? 0 : number;
        pkt->hail.number = (uint16_t)(blast->round - (shape >> 2 & 1));
        pkt->hail.word[0] = number * UINT32_C(0x01010101);
        pkt->hail.marks = shape >> 3 & 1;
        if (blast->total < 32)
            pkt->hail.word[0] &= (1u << blast->total) - 1;
        break;
    case GW_HAIL_REPORT:
        pkt->seq = (uint32_t)blast->round << GW_HAIL_ROUND_SHIFT | (number & 3);
        pkt->hail.word[0] = number & 8 ? UINT32_MAX : number;
        pkt->hail.marks = shape;
        break;
    default:
        pkt->hail.marks = number < 16 ? number & 3 : 0;
        pkt->seq = number >> 7;
    }
    input(f, pkt);
}

/* What is said by flows: requests for values, and what answers them. */
static void say_flow(struct fuzz *f, uint8_t who)
{
    const struct gw_expect *posted = awaited(f, who, true);
    uint8_t size = take(f);
    if (posted && !posted->arrived) /* a flow would mark what has come */
        gw_test_deliver(f->own.host.endpoint, posted->peer, posted->tag,
                        size ? size : posted->bytes, &f->steps);
}

/* All that is sent has left, and is enough, but for so many packets of each message. */
static void finish_all(struct fuzz *f, uint32_t lacks)
{
    struct gw_endpoint *ep = f->own.host.endpoint;
    for (uint32_t i = 0; i < 4; i++) {
        f->now += 10 * GW_US;
        gw_node_expire(gw_endpoint_node(ep), f->now);
        output(f);
    }
    while (gw_test_end_flow(ep, 0, true, f->now))
        continue;
    for (uint32_t i = 0; i < ep->cfg.blasts_max; i++) {
        const struct gw_blast_tx *blast = &ep->blasts_tx[i];
        if (!blast->transport)
            continue;
        struct gw_pkt *pkt = packet(f, blast->peer, blast->id, GW_PKT_HAIL);
        if (!pkt)
            return;
        pkt->hail.op = GW_HAIL_FINISH;
        pkt->seq = blast->total - lacks;
        pkt->hail.word[0] = (uint32_t)blast->bytes - lacks * MTU;
        input(f, pkt);
    }
}

/* All that is awaited comes, but for some places; so is what is sent. */
static void serve(struct fuzz *f, uint8_t who)
{
    struct gw_endpoint *ep = f->own.host.endpoint;
    uint8_t note = take(f), every = take(f);
    for (uint32_t i = 0; i < ep->cfg.expect_max; i++) {
        const struct gw_expect *posted = &ep->expectations[i];
        bool is_mask = !posted->arrived && posted->tag < GW_MESH_TAG_MESSAGE;
        if (!posted->data || (!posted->arrived && !is_mask) || posted->bytes > PLACES * MTU)
            continue;
        struct message message = message_for(f, posted, 4);
        say(f, &message, GW_HAIL_RENDEZVOUS, UINT32_C(1) << GW_HAIL_RTT_SHIFT | 0xffff);
        for (uint32_t place = 0; place < message.total; place++)
            if (is_mask)
                send(f, &message, place, note > 250 ? 0xfe : 0xff);
            else if (every == 0 || (place + 1) % every)
                send(f, &message, place, note < 240 ? 1u + note % WORLD : (uint32_t)note << 8);
        say(f, &message, GW_HAIL_CONFIRM, 0);
    }
    finish_all(f, who >> 6);
}

static void step(struct fuzz *f)
{
    uint8_t what = take(f), who = take(f);
    switch (what % 16) {
    case 0:
    case 1:
    case 2:
        start_call(f, who);
        break;
    case 3:
    case 4:
    case 5:
        say_blast(f, who & 0x87);
        break;
    case 6:
    case 7:
        serve(f, who);
        break;
    case 8:
        say_more(f, who);
        break;
    case 9:
    case 10:
    case 11:
        answer(f, who);
        break;
    case 12:
        gw_test_end_flow(f->own.host.endpoint, who % 16, who < 240, f->now);
        break;
    case 13:
        say_flow(f, who % 16);
        break;
    case 14:
        f->now += who * GW_US;
        break;
    default:
        output(f);
    }
    f->now += GW_US / 4;
    output(f);
    turn(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gw_transport flows, blasts;
    struct fuzz *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->steps = (struct gw_test_steps){data, size};
    f->now = GW_S;
    if (!flows.lb) {
        flows = gw_test_transport("smartt", "spray", "timeout");
        blasts = gw_test_transport("dlcp", "spray", "timeout");
    }
    open_fuzz(f, &flows, &blasts);
    meet(f);
    while (f->steps.left)
        step(f);
    /* A job of which nothing is heard any more ends, if it waits for anything. */
    for (uint32_t i = 0; i < 40 && !f->is_over && f->in_work; i++) {
        f->now += STALL / 8;
        output(f);
        turn(f);
    }
    GW_ASSERT(f->is_over || f->in_work == 0);
    gw_communicator_abort(f->own.comm, f->now);
    turn(f);
    GW_ASSERT(f->is_over && f->in_work == 0);
    for (uint32_t i = 0; gw_communicator_is_busy(f->own.comm); i++) {
        GW_ASSERT(i < TURNS_MAX);
        gw_test_end_flow(f->own.host.endpoint, 0, true, f->now += GW_US);
        turn(f);
    }
    gw_test_rank_close(&f->own, &f->budget);
    free(f);
    return 0;
}

enum {
    ROUNDS = 50000 / GW_TEST_EVERY(4),
};

static void check_reached(void)
{
    print_message("failed %u, broken %u, done %u, refused %u, bounded %u, lacking %u, messages %u, "
                  "sent %u\n",
                  reached.failed, reached.broken, reached.done, reached.refused, reached.bounded,
                  reached.lacking, reached.messages, reached.sent);
    assert_true(reached.failed > ROUNDS / 2 && reached.broken > ROUNDS / 50);
    assert_true(reached.done > ROUNDS && reached.refused > ROUNDS / 100);
    assert_true(reached.bounded > ROUNDS / 2 && reached.lacking > ROUNDS / 50);
    assert_true(reached.messages > ROUNDS / 10 && reached.sent > ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "parts",
    .seed = 23,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
