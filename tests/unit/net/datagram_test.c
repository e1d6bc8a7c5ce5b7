/* What a datagram becomes does not depend on the one before it in its train. */
#include "pool_fixture.h"
#include "random_pkt.h"
#include "unit/net/auth_ends.h"

#include "core/codec.h"
#include "net/datagram.h"

enum {
    MTU = 1000,
    PKTS = 128,
    TRAIN = 12,
    TRAINS = 3000,
    DATAGRAM = GW_WIRE_HDR_MAX + MTU + 40,
};

#define COOKIE UINT64_C(0x1122334455660000)

static const uint64_t seed = 17;

struct fixture {
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_datapath datapath;
    struct gw_datapath_peer peer;
};

static struct gw_datapath_stats none;

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char error[GW_NET_ERROR_MAX];
    gw_test_pool_open(&f->pool, &f->bufs, PKTS, GW_WIRE_DATA_SIZE + DATAGRAM);
    gw_buf_pool_set_front(&f->bufs, GW_WIRE_DATA_SIZE);
    const struct gw_datapath_cfg cfg = {
        .pool = &f->pool, .address = "127.0.0.1", .entropies = 1, .mtu = MTU, .peers_max = 1};
    assert_int_equal(gw_datapath_init(&f->datapath, &cfg, error), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gw_datapath_fini(&f->datapath);
    gw_test_pool_close(&f->pool);
    free(f);
    return 0;
}

struct train {
    uint8_t bytes[TRAIN][DATAGRAM];
    uint32_t length[TRAIN];
};

/* Fragments one after the other; now and then something else, a bit that is wrong, or a length. */
static void draw(struct gw_prng *prng, struct train *train)
{
    const struct gw_codec codec = {.cookie = COOKIE};
    struct gw_pkt pkt = gw_random_pkt(prng, MTU, 0);
    for (uint32_t i = 0; i < TRAIN; i++) {
        struct gw_frame frame;
        uint8_t *bytes = train->bytes[i];
        gw_codec_encode(&codec, &pkt, &frame);
        memset(bytes, (int)i, DATAGRAM);
        memcpy(bytes, frame.hdr, frame.hdr_size);
        train->length[i] = frame.length;
        uint32_t what = gw_prng_below(prng, 10);
        if (what == 0)
            bytes[gw_prng_below(prng, GW_WIRE_DATA_SIZE)] ^=
                (uint8_t)(1u << gw_prng_below(prng, 8));
        else if (what == 1)
            train->length[i] -= gw_prng_below(prng, 6);
        else if (what == 2)
            pkt = gw_random_pkt(prng, MTU, 0);
        if (pkt.q.kind == GW_PKT_GRAD || pkt.q.kind == GW_PKT_PARAM) {
            pkt.seq++;
            pkt.index++;
        } else if (pkt.q.kind == GW_PKT_DATA && pkt.seq + 2 < pkt.data.total) {
            pkt.seq++;
        }
    }
}

/* Notes what packets were, and releases them. */
static void see(struct fixture *f, struct gw_pkt **pkts, uint32_t count, struct gw_pkt *seen)
{
    for (uint32_t i = 0; i < count; i++) {
        seen[i] = *pkts[i];
        seen[i].q.next = 0;
        if (seen[i].buf != GW_BUF_NONE)
            seen[i].buf = *(const unsigned char *)gw_buf_payload(&f->bufs, seen[i].buf);
        gw_pkt_release(&f->pool, pkts[i]);
    }
}

/* Takes the whole train; `remembers`: what came before. Returns packets, and adds what they were
 * to `seen`. */
static uint32_t take_all(struct fixture *f, struct train *train, bool remembers,
                         struct gw_pkt *seen)
{
    struct gw_datagram datagram = {.peer = &f->peer, .cookie = COOKIE, .entropy = 3, .tos = 1 << 2};
    struct gw_pkt *pkts[TRAIN];
    uint32_t count = 0;
    for (uint32_t i = 0; i < TRAIN; i++) {
        datagram.bytes = train->bytes[i];
        datagram.length = train->length[i];
        datagram.before = remembers ? datagram.before : NULL;
        pkts[count] = gw_datagram_take(&f->datapath, &datagram, 0);
        count += pkts[count] != NULL;
    }
    see(f, pkts, count, seen);
    return count;
}

/* The same of one that lies in buffers, where those that are as long are offered together. */
static uint32_t take_in_place(struct fixture *f, const struct train *train, struct gw_pkt *seen,
                              uint64_t *alike)
{
    struct gw_datagram datagram = {.peer = &f->peer, .cookie = COOKIE, .entropy = 3, .tos = 1 << 2};
    struct gw_pkt *pkts[TRAIN];
    uint32_t bufs[TRAIN], count = 0;
    for (uint32_t i = 0; i < TRAIN; i++) {
        bufs[i] = gw_buf_claim(&f->bufs);
        memcpy(gw_buf_bytes(&f->bufs, bufs[i]) - GW_WIRE_DATA_SIZE, train->bytes[i], DATAGRAM);
    }
    for (uint32_t i = 0, end; i < TRAIN;) {
        datagram.bytes = gw_buf_bytes(&f->bufs, bufs[i]) - GW_WIRE_DATA_SIZE;
        datagram.length = train->length[i];
        datagram.buf = &bufs[i++];
        pkts[count] = gw_datagram_take(&f->datapath, &datagram, 0);
        count += pkts[count] != NULL;
        for (end = i; end < TRAIN && train->length[end] == datagram.before_length;)
            end++;
        uint32_t taken =
            gw_datagram_take_alike(&f->datapath, &datagram, &bufs[i], end - i, &pkts[count]);
        count += taken;
        *alike += taken;
        i += taken;
    }
    see(f, pkts, count, seen);
    for (uint32_t i = 0; i < TRAIN; i++)
        gw_buf_release(&f->bufs, bufs[i]);
    return count;
}

/* Protects what was drawn, with some bits changed on the way and some datagrams sent twice. */
static void seal_all(struct gw_prng *prng, struct gw_auth *auth, struct train *train)
{
    for (uint32_t i = 0; i < TRAIN; i++) {
        uint8_t *bytes = train->bytes[i];
        const struct iovec covered = {bytes, train->length[i]};
        if (auth->encrypts)
            gw_auth_encrypt(auth, bytes, train->length[i], bytes);
        else
            gw_auth_seal(auth, &covered, 1, bytes + train->length[i]);
        train->length[i] += GW_AUTH_SIZE;
        uint32_t what = gw_prng_below(prng, 16);
        if (what == 0) {
            bytes[gw_prng_below(prng, train->length[i])] ^= (uint8_t)(1u << gw_prng_below(prng, 8));
        } else if (what == 1 && i > 0) {
            memcpy(bytes, train->bytes[i - 1], DATAGRAM);
            train->length[i] = train->length[i - 1];
        }
    }
}

/* Each datagram is judged, and decrypted, although it says almost what the one before it said. */
static void check_protected(struct fixture *f, bool encrypts)
{
    struct gw_prng prng = gw_prng_derive(seed, 1 + encrypts);
    struct ends ends;
    uint64_t taken = 0, malformed = 0, forged = 0, repeated = 0;
    ends_open(&ends, encrypts);
    for (uint32_t i = 0; i < TRAINS; i++) {
        struct gw_pkt alone[TRAIN], together[TRAIN];
        struct train train, again; /* what is decrypted is not as it was */
        draw(&prng, &train);
        seal_all(&prng, &ends.initiator, &train);
        again = train;
        struct gw_auth before = ends.responder;
        f->peer.auth = &before;
        f->datapath.stats = none;
        uint32_t count = take_all(f, &train, false, alone);
        const struct gw_datapath_stats stats = f->datapath.stats;
        f->peer.auth = &ends.responder;
        f->datapath.stats = none;
        assert_int_equal(take_all(f, &again, true, together), count);
        assert_memory_equal(&f->datapath.stats, &stats, sizeof(stats));
        assert_memory_equal(together, alone, count * sizeof(*alone));
        assert_memory_equal(&before, &ends.responder, sizeof(before));
        taken += count;
        malformed += stats.malformed;
        forged += stats.forged;
        repeated += stats.repeated;
    }
    assert_true(taken > TRAINS * TRAIN / 2 && malformed > TRAINS / 10);
    assert_true(forged > TRAINS / 10 && repeated > TRAINS / 10);
}

static void datagram_take__judges_each_of_a_train(void **state)
{
    check_protected(*state, false);
}

static void datagram_take__decrypts_each_of_a_train(void **state)
{
    check_protected(*state, true);
}

static void datagram_take__is_the_same_in_a_train(void **state)
{
    struct fixture *f = *state;
    struct gw_prng prng = gw_prng_derive(seed, 0);
    struct train train;
    uint64_t taken = 0, malformed = 0, alike = 0;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < TRAINS; i++) {
        struct gw_pkt alone[TRAIN], together[TRAIN];
        draw(&prng, &train);
        f->datapath.stats = none;
        uint32_t count = take_all(f, &train, false, alone);
        const struct gw_datapath_stats stats = f->datapath.stats;
        f->datapath.stats = none;
        assert_int_equal(take_all(f, &train, true, together), count);
        assert_memory_equal(&f->datapath.stats, &stats, sizeof(stats));
        assert_memory_equal(together, alone, count * sizeof(*alone));
        f->datapath.stats = none;
        assert_int_equal(take_in_place(f, &train, together, &alike), count);
        assert_memory_equal(&f->datapath.stats, &stats, sizeof(stats));
        assert_memory_equal(together, alone, count * sizeof(*alone));
        taken += count;
        malformed += stats.malformed;
    }
    assert_true(taken > TRAINS * TRAIN / 2 && malformed > TRAINS / 10 && alike > TRAINS);
}

/* What finds no room is left to be taken one by one, which counts it; nothing gets lost. */
static void datagram_take_alike__ends_with_the_pool(void **state)
{
    struct fixture *f = *state;
    const struct gw_codec codec = {.cookie = COOKIE};
    struct gw_pkt pkt = {.q = {.kind = GW_PKT_GRAD}, .agg = {.values = 8, .bitmap = 1}};
    struct gw_frame frame;
    uint32_t bufs[TRAIN], others[PKTS], count = 0;
    for (uint32_t i = 0; i < TRAIN; i++) {
        pkt.seq = pkt.index = (uint16_t)i;
        gw_codec_encode(&codec, &pkt, &frame);
        bufs[i] = gw_buf_claim(&f->bufs);
        memcpy(gw_buf_bytes(&f->bufs, bufs[i]) - GW_WIRE_DATA_SIZE, frame.hdr, frame.hdr_size);
    }
    while (count < PKTS - TRAIN - 4)
        others[count++] = gw_buf_claim(&f->bufs);
    struct gw_datagram datagram = {.bytes = gw_buf_bytes(&f->bufs, bufs[0]) - GW_WIRE_DATA_SIZE,
                                   .length = frame.length,
                                   .buf = bufs,
                                   .peer = &f->peer,
                                   .cookie = COOKIE};
    struct gw_pkt *pkts[TRAIN] = {gw_datagram_take(&f->datapath, &datagram, 0)};
    assert_non_null(pkts[0]);
    assert_int_equal(gw_datagram_take_alike(&f->datapath, &datagram, bufs + 1, TRAIN - 1, pkts + 1),
                     3);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(pkts[i]->seq, i);
        assert_int_equal(pkts[i]->index, i);
    }
    datagram.bytes = gw_buf_bytes(&f->bufs, bufs[4]) - GW_WIRE_DATA_SIZE;
    datagram.buf = bufs + 4;
    assert_null(gw_datagram_take(&f->datapath, &datagram, 0));
    assert_int_equal(f->datapath.stats.no_room, 1);
    for (uint32_t i = 0; i < 4; i++)
        gw_pkt_release(&f->pool, pkts[i]);
    for (uint32_t i = 0; i < TRAIN; i++)
        gw_buf_release(&f->bufs, bufs[i]);
    while (count)
        gw_buf_release(&f->bufs, others[--count]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(datagram_take__is_the_same_in_a_train, setup, teardown),
        cmocka_unit_test_setup_teardown(datagram_take_alike__ends_with_the_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(datagram_take__judges_each_of_a_train, setup, teardown),
        cmocka_unit_test_setup_teardown(datagram_take__decrypts_each_of_a_train, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
