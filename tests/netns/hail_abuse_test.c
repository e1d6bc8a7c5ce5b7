/*
 * A rank that does not keep to the protocol of blasts (core/host/blast.h), over sockets. Two others
 * send each other messages of which a part may be missing, await one of the rank and send it one,
 * while it says hails of all kinds to both, and data of places and lengths that no message has: in
 * its own name and in theirs, of the flows that there are and of others. What the two send each
 * other is as it should be, nothing is written beside the memory that the rank was given, no memory
 * grows, what makes no sense is counted, and when the rank behaves the calls that wait for it end.
 */
#include "liar.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/blast_hail.h"
#include "core/host/egress.h"
#include "core/host/endpoint_impl.h"
#include "core/ranks/mesh_impl.h"

enum {
    LIAR = 2, /* the rank; the others are honest */
    RANKS = 3,
    PACKETS = 100, /* of a message */
    MTU = 1408,
    LAST = 900,
    BYTES = (PACKETS - 1) * MTU + LAST,
    GUARD = 1 << 20, /* bytes around memory that the rank may write to */
    LIES = 20000,
    LIES_AT_ONCE = 32,
    ROUNDS_MIN = 20,
    GROWTH_MAX = 8 << 20,
    DEADLINE_LONG_MS = 20000,
};

/* Tags. */
enum {
    EXCHANGED = 1, /* between the honest ones */
    GOES_ON = 2,   /* from rank 0 to 1: whether another round follows */
    FROM_LIAR = 3,
    TO_LIAR = 4,
    UNWANTED = 5,
    WELL = 6, /* the calls with the liar have ended: from rank 1 to 0, and from there to it */
};

static const double bound = 0.1;

/* Byte `i` of what a rank sends. */
static unsigned char byte_of(int rank, uint32_t i)
{
    return (unsigned char)((uint32_t)rank + i % 251);
}

/* ---- The liar. ---- */

struct liar {
    struct gw_io *io;
    struct gw_prng prng;
    uint32_t addresses[RANKS];
    bool is_open; /* its message has been announced properly, for long enough */
    bool answers; /* says what receivers say, too, of what is sent to it or to others */
};

static unsigned char poison[MTU];

static struct gw_pkt *claim(struct liar *l)
{
    struct gw_pkt *pkt;
    while (!(pkt = gw_sender_claim(l->io->endpoint, false)))
        liar_turn(l->io);
    return pkt;
}

/* The number of the message that the honest ones await. */
static uint32_t own_flow(const struct liar *l)
{
    return l->io->endpoint->cfg.tx_flows_max;
}

static struct gw_pkt *packet(struct liar *l, uint32_t to, enum gw_pkt_kind kind)
{
    struct gw_endpoint *ep = l->io->endpoint;
    struct gw_pkt *pkt = claim(l);
    *pkt = (struct gw_pkt){
        .q = {.size = ep->cfg.hdr,
              .class = kind == GW_PKT_DATA ? 1 : GW_CLASS_CONTROL,
              .kind = (uint8_t)kind},
        .src = ep->cfg.address,
        .dst = l->addresses[to],
        .flow = own_flow(l),
        .sent_at = gw_io_now(l->io),
        .buf = GW_BUF_NONE,
    };
    return pkt;
}

static void say_rendezvous(struct liar *l, uint32_t to)
{
    struct gw_pkt *pkt = packet(l, to, GW_PKT_HAIL);
    pkt->hail.op = GW_HAIL_RENDEZVOUS;
    pkt->seq = UINT32_C(100) << GW_HAIL_RTT_SHIFT | GW_HAIL_BOUND_MAX;
    pkt->hail.number = MTU;
    pkt->index = LAST;
    pkt->hail.word[0] = PACKETS;
    pkt->hail.word[1] = GW_MESH_TAG_MESSAGE | FROM_LIAR;
    gw_egress_control(l->io->endpoint, pkt);
}

static void send_data(struct liar *l, uint32_t to, uint32_t place)
{
    struct gw_pkt *pkt = packet(l, to, GW_PKT_DATA);
    pkt->q.flags = GW_PKT_BLAST;
    pkt->seq = place;
    pkt->data.total = PACKETS;
    pkt->data.mss = MTU;
    pkt->data.len = place + 1 == PACKETS ? LAST : MTU;
    pkt->q.size += pkt->data.len;
    gw_sender_fill(l->io->endpoint, pkt, poison, pkt->data.len);
    gw_egress_control(l->io->endpoint, pkt);
}

/* Anything, mostly where limits are. */
static uint32_t number(struct liar *l)
{
    static const uint32_t limits[] = {
        0, 1, 63, 64, PACKETS - 1, PACKETS, PACKETS + 1, UINT16_MAX, UINT32_C(1) << 31, UINT32_MAX};
    uint32_t choice = gw_prng_below(&l->prng, GW_COUNT_OF(limits) + 2);
    return choice < GW_COUNT_OF(limits) ? limits[choice] : (uint32_t)gw_prng_next(&l->prng);
}

/* Of a flow: ours, one that has been announced to us, or one that may be. */
static uint32_t flow(struct liar *l)
{
    const struct gw_early *early = &l->io->endpoint->early;
    uint32_t choice = gw_prng_below(&l->prng, 4);
    if (choice == 0 && early->count)
        return early->flows[gw_prng_below(&l->prng, early->count)].flow;
    return choice < 3 ? own_flow(l) : own_flow(l) + (number(l) & 0x30007);
}

/* Bytes that a RENDEZVOUS announces, at most. */
static uint64_t announced(const struct gw_pkt *pkt)
{
    return (uint64_t)pkt->hail.word[0] *
           (pkt->hail.number > pkt->index ? pkt->hail.number : pkt->index);
}

/* Data as the wire can say it: of a place in its message, and as long as the others. */
static void shape_data(struct liar *l, struct gw_pkt *pkt)
{
    bool is_odd = gw_prng_below(&l->prng, 4) == 0;
    pkt->q.flags = GW_PKT_BLAST;
    pkt->seq %= UINT32_MAX - 1;
    pkt->data.total = pkt->seq < PACKETS && !is_odd ? PACKETS : pkt->seq + 1 + number(l) % 2;
    pkt->data.mss = is_odd ? (uint16_t)(1 + gw_prng_below(&l->prng, MTU)) : MTU;
    pkt->data.len = pkt->data.mss;
    if (pkt->seq + 1 == pkt->data.total)
        pkt->data.len = (uint16_t)(1 + gw_prng_below(&l->prng, pkt->data.mss));
    pkt->data.tag = number(l);
    pkt->q.size += pkt->data.len;
    gw_sender_fill(l->io->endpoint, pkt, poison, pkt->data.len);
}

static void lie(struct liar *l, uint32_t to)
{
    bool is_data = gw_prng_below(&l->prng, 4) == 0;
    struct gw_pkt *pkt = packet(l, to, is_data ? GW_PKT_DATA : GW_PKT_HAIL);
    pkt->flow = flow(l);
    pkt->seq = number(l);
    if (gw_prng_below(&l->prng, 8) == 0)
        pkt->src = l->addresses[!to]; /* forged */
    if (is_data) {
        shape_data(l, pkt);
    } else {
        static const uint8_t of_senders[] = {GW_HAIL_RENDEZVOUS, GW_HAIL_STOP, GW_HAIL_CONFIRM};
        pkt->hail.op = l->answers ? (uint8_t)gw_prng_below(&l->prng, GW_HAIL_OPS)
                                  : of_senders[gw_prng_below(&l->prng, GW_COUNT_OF(of_senders))];
        pkt->hail.marks = (uint8_t)number(l);
        pkt->hail.number = (uint16_t)number(l);
        pkt->index = (uint16_t)number(l);
        pkt->hail.word[0] = number(l);
        pkt->hail.word[1] = number(l);
        /* A member may end its job: by saying no, or announcing more than there is room for. */
        if (pkt->hail.op == GW_HAIL_ACCEPT)
            pkt->hail.marks &= (uint8_t)~GW_HAIL_REFUSED;
        if (pkt->hail.op == GW_HAIL_RENDEZVOUS)
            pkt->hail.word[1] = GW_MESH_TAG_MESSAGE |
                                (announced(pkt) <= BYTES && l->is_open ? FROM_LIAR : UNWANTED);
    }
    gw_egress_control(l->io->endpoint, pkt);
}

/* Does what is to be done in the end: sends one message to each and takes theirs, until all is well
 * and rank 0 has said so. */
static void behave(struct liar *l)
{
    static unsigned char taken[LIAR][BYTES];
    static uint64_t arrived[LIAR][PACKETS / 64 + 1];
    static atomic_uchar is_well;
    struct gw_mesh *mesh = gw_communicator_mesh(l->io->comm);
    assert_int_equal(gw_mesh_expect(mesh, 0, GW_MESH_TAG_MESSAGE | WELL, &is_well, 1), 0);
    for (uint32_t to = 0; to < LIAR; to++)
        assert_int_equal(
            gw_mesh_expect_part(mesh, to,
                                &(struct gw_expect){.tag = GW_MESH_TAG_MESSAGE | TO_LIAR,
                                                    .data = taken[to],
                                                    .bytes = BYTES,
                                                    .arrived = arrived[to],
                                                    .packets_max = PACKETS}),
            0);
    while (!is_well) {
        for (uint32_t to = 0; to < LIAR; to++) {
            say_rendezvous(l, to);
            for (uint32_t place = 0; place < PACKETS; place++)
                send_data(l, to, place);
        }
        liar_turn(l->io);
    }
    for (int from = 0; from < LIAR; from++)
        for (uint32_t i = 0; i < BYTES; i++)
            assert_int_equal(taken[from][i], byte_of(from, i));
}

static void run_liar(bool answers)
{
    struct liar l = {
        .io = liar_open(LIAR, RANKS), .prng = gw_prng_derive(7, 0), .answers = answers};
    struct gw_mesh *mesh = gw_communicator_mesh(l.io->comm);
    memset(poison, 0xee, sizeof(poison));
    liar_join(l.io);
    liar_reach(l.io, 0);
    liar_reach(l.io, 1);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        l.addresses[rank] = mesh->addresses[rank];
    for (uint32_t i = 0; i < LIES; i++) {
        lie(&l, 0);
        lie(&l, 1);
        if (i % LIES_AT_ONCE)
            continue;
        say_rendezvous(&l, 0);
        say_rendezvous(&l, 1);
        liar_turn(l.io);
        l.is_open = i > LIES / 2;
    }
    behave(&l);
    gw_communicator_leave(l.io->comm, gw_io_now(l.io));
    for (;;)
        liar_turn(l.io);
}

/* ---- The honest ranks. ---- */

/* Of the memory that the liar may write to, those before and behind it. */
static unsigned char guarded[GUARD + BYTES + GUARD];

static struct gradwire_call_options bounded(struct gradwire_parts *parts)
{
    struct gradwire_call_options options;
    gradwire_call_options_init(&options, sizeof(options));
    options.bound = bound;
    options.parts = parts;
    return options;
}

static void fill(unsigned char *bytes, int rank)
{
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = byte_of(rank, i);
}

/* A message each way between the honest ranks, of which a tenth may be missing. */
static int exchange(gradwire *job, int rank)
{
    static unsigned char own[BYTES], theirs[BYTES];
    uint64_t arrived[PACKETS / 64 + 1];
    struct gradwire_parts parts = {.room = PACKETS, .arrived = arrived};
    struct gradwire_call_options send = bounded(NULL), receive = bounded(&parts);
    gradwire_call sent, received;
    fill(own, rank);
    memset(theirs, 0x55, sizeof(theirs));
    CHECK(gradwire_receive_with(job, theirs, BYTES, !rank, EXCHANGED, &receive, &received) == 0);
    CHECK(gradwire_send_with(job, own, BYTES, !rank, EXCHANGED, &send, &sent) == 0);
    CHECK(gradwire_wait(job, received) == 0 && gradwire_wait(job, sent) == 0);
    CHECK(parts.count == PACKETS && (double)parts.missing <= bound * (PACKETS - 1));
    for (uint32_t i = 0; i < BYTES; i++) {
        bool is_there = arrived[i / MTU / 64] >> i / MTU % 64 & 1;
        CHECK(theirs[i] == (is_there ? byte_of(!rank, i) : 0x55));
    }
    return 0;
}

/* Rank 0 says whether it wants another round; *goes_on is so at both. */
static int agree(gradwire *job, int rank, unsigned char *goes_on)
{
    CHECK((rank == 0 ? gradwire_send(job, goes_on, 1, 1, GOES_ON)
                     : gradwire_receive(job, goes_on, 1, 0, GOES_ON)) == 0);
    return 0;
}

static int is_unharmed(gradwire *job, int rank)
{
    struct gradwire_stats stats = {.size = sizeof(stats)};
    for (uint32_t i = 0; i < GUARD; i++)
        CHECK(guarded[i] == 0x55 && guarded[GUARD + BYTES + i] == 0x55);
    CHECK(gradwire_get_stats(job, &stats) == 0);
    CHECK(stats.packets_refused > LIES / 4);
    return 0;
}

static int be_honest(gradwire *job, int rank)
{
    static unsigned char own[BYTES];
    static const unsigned char well = 1;
    struct gradwire_call_options terms = bounded(NULL);
    gradwire_call sent, received;
    unsigned char goes_on = 1;
    memset(guarded, 0x55, sizeof(guarded));
    fill(own, rank);
    CHECK(exchange(job, rank) == 0);
    CHECK(gradwire_receive_with(job, guarded + GUARD, BYTES, LIAR, FROM_LIAR, &terms, &received) ==
          0);
    CHECK(gradwire_send_with(job, own, BYTES, LIAR, TO_LIAR, &terms, &sent) == 0);
    size_t resident = gw_test_resident_bytes();
    for (int i = 0, is_done = 0; goes_on; i++) {
        CHECK(exchange(job, rank) == 0);
        if (rank == 0 && !is_done)
            CHECK(gradwire_test(job, received, &is_done) == 0);
        goes_on = i < ROUNDS_MIN || !is_done;
        CHECK(agree(job, rank, &goes_on) == 0);
    }
    if (rank == 1)
        CHECK(gradwire_wait(job, received) == 0);
    CHECK(gradwire_wait(job, sent) == 0);
    CHECK(gw_test_resident_bytes() < resident + GROWTH_MAX);
    CHECK(is_unharmed(job, rank) == 0);
    CHECK((rank == 1 ? gradwire_send(job, &well, 1, 0, WELL)
                     : gradwire_receive(job, &goes_on, 1, 1, WELL)) == 0);
    CHECK(rank == 1 || gradwire_send(job, &well, 1, LIAR, WELL) == 0);
    return 0;
}

/* What it sends the liar is accepted, finished without data and asked for again and again: nothing
 * of that is believed, and in the end the liar is lost. */
static int be_answered(gradwire *job, int rank)
{
    static unsigned char own[BYTES];
    struct gradwire_call_options terms = bounded(NULL);
    gradwire_call sent;
    size_t resident = gw_test_resident_bytes();
    CHECK(gradwire_send_with(job, own, BYTES, LIAR, TO_LIAR, &terms, &sent) == 0);
    CHECK(gradwire_wait(job, sent) == GRADWIRE_ERR_PEER);
    CHECK(gw_test_resident_bytes() < resident + GROWTH_MAX);
    CHECK(strcmp(gradwire_last_error(), "rank 2 is lost") == 0);
    return 0;
}

static void run_beside_liar(bool answers, int deadline_ms, rank_fn *fn)
{
    pid_t honest[LIAR], liar;
    choose_join("127.0.0.1");
    via = GRADWIRE_VIA_RING;
    fflush(NULL);
    liar = fork();
    if (liar == 0) {
        alarm(GUARD_S);
        run_liar(answers);
    }
    assert_int_equal(setenv("GRADWIRE_FAULTS", "lose=0.02,duplicate=0.01,seed=7", 1), 0);
    for (int rank = 0; rank < LIAR; rank++) {
        struct gradwire_options options = options_of(rank);
        options.world = RANKS;
        options.deadline_ms = deadline_ms;
        honest[rank] = start_rank(&options, fn);
    }
    for (int rank = 0; rank < LIAR; rank++) {
        int status;
        assert_int_equal(waitpid(honest[rank], &status, 0), honest[rank]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(waitpid(liar, NULL, WNOHANG), 0); /* it has not failed */
    kill(liar, SIGKILL);
    assert_int_equal(waitpid(liar, NULL, 0), liar);
    unsetenv("GRADWIRE_FAULTS");
}

static void hails__of_a_liar_harm_nobody(void **state)
{
    (void)state;
    run_beside_liar(false, DEADLINE_LONG_MS, be_honest);
}

static void hails__of_a_liar_finish_nothing(void **state)
{
    (void)state;
    run_beside_liar(true, DEADLINE_MS, be_answered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hails__of_a_liar_harm_nobody),
        cmocka_unit_test(hails__of_a_liar_finish_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
