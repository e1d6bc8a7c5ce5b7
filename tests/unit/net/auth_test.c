/* The authentication of packets: what is genuine comes through once, in any order, and nothing else
 * does. */
#include "unit/net/auth_ends.h"

#include "base/prng.h"

enum {
    HDR = 44,
    PAYLOAD = 100,
    PKT = HDR + PAYLOAD,
    HISTORY = 3 * GW_AUTH_WINDOW,
    ROUNDS = 100000,
};

static const uint64_t seed = 2026;

static void seal(struct gw_auth *auth, const void *bytes, size_t size, uint8_t *out)
{
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    gw_auth_seal(auth, &piece, 1, out);
}

static enum gw_auth_verdict open_packet(struct gw_auth *auth, const void *bytes, size_t size,
                                        const uint8_t *code)
{
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    return gw_auth_open(auth, &piece, 1, code);
}

/* Against BLAKE2b of Python's hashlib, and ChaCha20 and Poly1305 written from RFC 8439 there. */
static void tag_seal__is_as_the_standards_say(void **state)
{
    (void)state;
    static const uint8_t first[] = "\x00\x00\x00\x01\xae\x2f\x45\xb0\x9c\x2d"
                                   "\x5c\xfb\xa0\x2e\x4a\x98\x55\x57\x00\xfd";
    static const uint8_t second[] = "\x00\x00\x00\x01\x00\xe6\x2b\xd1\x4e\x7c"
                                    "\x04\x3a\xe4\x7e\x91\xa4\xb1\xd9\x44\xfd";
    struct ends ends;
    uint8_t out[GW_AUTH_SIZE];
    ends_open(&ends, false);
    seal(&ends.initiator, "Header, then payload.", 21, out);
    assert_memory_equal(out, first, GW_AUTH_SIZE);
    ends_skip_to(&ends, turn);
    seal(&ends.initiator, "Header, then payload.", 21, out);
    assert_memory_equal(out, second, GW_AUTH_SIZE);
}

static void tag_seal__pieces_do_not_matter(void **state)
{
    (void)state;
    uint8_t bytes[PKT], whole[GW_AUTH_SIZE], out[GW_AUTH_SIZE];
    struct ends ends;
    memset(bytes, 0x5a, sizeof(bytes));
    ends_open(&ends, false);
    seal(&ends.initiator, bytes, PKT, whole);
    for (size_t cut = 0; cut <= PKT; cut++) {
        struct iovec pieces[] = {{bytes, cut}, {bytes + cut, PKT - cut}};
        ends_skip_to(&ends, 0);
        gw_auth_seal(&ends.initiator, pieces, 2, out);
        assert_memory_equal(out, whole, GW_AUTH_SIZE);
    }
}

static void tag_open__takes_both_ways(void **state)
{
    (void)state;
    struct ends ends;
    uint8_t out[GW_AUTH_SIZE];
    ends_open(&ends, false);
    for (int i = 0; i < 10; i++) {
        seal(&ends.initiator, "ping", 4, out);
        assert_int_equal(open_packet(&ends.responder, "ping", 4, out), GW_AUTH_GENUINE);
        seal(&ends.responder, "pong", 4, out);
        assert_int_equal(open_packet(&ends.initiator, "pong", 4, out), GW_AUTH_GENUINE);
        /* Sent back to where it comes from. */
        seal(&ends.responder, "pong", 4, out);
        assert_int_equal(open_packet(&ends.responder, "pong", 4, out), GW_AUTH_FORGED);
    }
}

static void tag_open__refuses_each_flipped_bit(void **state)
{
    (void)state;
    struct ends ends;
    uint8_t bytes[PKT + GW_AUTH_SIZE] = {1, 2, 3};
    ends_open(&ends, false);
    ends_skip_to(&ends, 12345);
    seal(&ends.initiator, bytes, PKT, bytes + PKT);
    for (uint32_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        enum gw_auth_verdict verdict = open_packet(&ends.responder, bytes, PKT, bytes + PKT);
        assert_true(verdict == GW_AUTH_FORGED ||
                    (verdict == GW_AUTH_OLD && bit / 8 >= PKT && bit / 8 < PKT + 4));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (uint32_t size = 0; size < PKT; size++)
        assert_int_equal(open_packet(&ends.responder, bytes, size, bytes + PKT), GW_AUTH_FORGED);
    assert_int_equal(open_packet(&ends.responder, bytes, PKT, bytes + PKT), GW_AUTH_GENUINE);
}

static void tag_init__every_session_has_its_own_keys(void **state)
{
    (void)state;
    for (int what = 0; what < 5; what++) {
        struct ends ends, others;
        uint8_t out[GW_AUTH_SIZE];
        ends_open(&ends, false);
        ends_open(&others, false);
        others.key.packets[31] ^= what == 1;
        others.session[15] ^= what == 2;
        others.cfg.initiators_cookie ^= what == 3;
        others.cfg.responders_cookie ^= what == 4;
        others.cfg.key = &others.key;
        others.cfg.session = others.session;
        gw_auth_init(&others.responder, &others.cfg);
        seal(&ends.initiator, "ping", 4, out);
        assert_int_equal(open_packet(&others.responder, "ping", 4, out),
                         what == 0 ? GW_AUTH_GENUINE : GW_AUTH_FORGED);
        /* What the responder sends after a restart has another key, too. */
        others.cfg.is_initiator = true;
        gw_auth_init(&others.initiator, &others.cfg);
        seal(&ends.responder, "pong", 4, out);
        assert_int_equal(open_packet(&others.initiator, "pong", 4, out),
                         what == 0 ? GW_AUTH_GENUINE : GW_AUTH_FORGED);
    }
}

static void tag_open__knows_a_window(void **state)
{
    (void)state;
    static const uint64_t starts[] = {0,
                                      100,
                                      GW_AUTH_WINDOW,
                                      UINT64_C(1) << 31,
                                      (UINT64_C(1) << 32) - 5,
                                      (UINT64_C(1) << 40) - 1};
    uint8_t(*out)[GW_AUTH_SIZE] = calloc(GW_AUTH_WINDOW + 2, GW_AUTH_SIZE);
    assert_non_null(out);
    for (size_t i = 0; i < GW_COUNT_OF(starts); i++) {
        struct ends ends;
        ends_open(&ends, false);
        ends_skip_to(&ends, starts[i]);
        for (uint32_t n = 1; n <= GW_AUTH_WINDOW + 1; n++)
            seal(&ends.initiator, &n, sizeof(n), out[n]);
        for (uint32_t n = GW_AUTH_WINDOW + 1; n > 0; n--)
            assert_int_equal(open_packet(&ends.responder, &n, sizeof(n), out[n]),
                             n > 1 ? GW_AUTH_GENUINE : GW_AUTH_OLD);
        for (uint32_t n = 1; n <= GW_AUTH_WINDOW + 1; n++)
            assert_int_equal(open_packet(&ends.responder, &n, sizeof(n), out[n]),
                             n > 1 ? GW_AUTH_REPEATED : GW_AUTH_OLD);
    }
    free(out);
}

/* A forged packet far ahead must not move the window. */
static void tag_open__forgery_changes_nothing(void **state)
{
    (void)state;
    struct ends ends;
    uint8_t out[GW_AUTH_SIZE], forged[GW_AUTH_SIZE];
    ends_open(&ends, false);
    seal(&ends.initiator, "one", 3, out);
    struct gw_auth before = ends.responder;
    memset(forged, 0xab, sizeof(forged));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        memcpy(forged, &i, sizeof(i));
        assert_true(open_packet(&ends.responder, "one", 3, forged) != GW_AUTH_GENUINE);
    }
    assert_memory_equal(&before, &ends.responder, sizeof(before));
    assert_int_equal(open_packet(&ends.responder, "one", 3, out), GW_AUTH_GENUINE);
}

/* Almost as many are lost in a row as the low bits can tell. */
static void tag_open__survives_a_long_loss(void **state)
{
    (void)state;
    struct ends ends;
    uint8_t out[GW_AUTH_SIZE], old[GW_AUTH_SIZE];
    ends_open(&ends, false);
    ends_skip_to(&ends, turn - 10);
    for (int i = 0; i < 10; i++) {
        seal(&ends.initiator, "x", 1, old);
        assert_int_equal(open_packet(&ends.responder, "x", 1, old), GW_AUTH_GENUINE);
        ends.initiator.tx_last += INT32_MAX - 1;
        seal(&ends.initiator, "x", 1, out);
        assert_int_equal(open_packet(&ends.responder, "x", 1, out), GW_AUTH_GENUINE);
        assert_true(ends.responder.rx_last == ends.initiator.tx_last);
        assert_int_equal(open_packet(&ends.responder, "x", 1, old), GW_AUTH_OLD);
    }
}

/*
 * Packets are lost, repeated and come late, by up to three windows, across a turn of the low bits;
 * each verdict is that of a model which remembers everything.
 */
static void tag_open__agrees_with_a_model(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(seed, 0);
    uint8_t(*out)[GW_AUTH_SIZE] = calloc(HISTORY, GW_AUTH_SIZE);
    bool *came = calloc(HISTORY, sizeof(*came)); /* by number % HISTORY */
    struct ends ends;
    uint64_t newest, verdicts[GW_AUTH_OLD + 1] = {0};
    assert_true(out && came);
    print_message("seed %llu\n", (unsigned long long)seed);
    ends_open(&ends, false);
    newest = turn - ROUNDS / 4;
    ends_skip_to(&ends, newest);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t last = ends.initiator.tx_last, first = turn - ROUNDS / 4 + 1;
        for (uint32_t sent = gw_prng_below(&prng, 3); sent > 0; sent--) {
            last++;
            seal(&ends.initiator, &last, sizeof(last), out[last % HISTORY]);
            came[last % HISTORY] = false;
        }
        uint32_t reach = gw_prng_below(&prng, 10) ? 16 : HISTORY - 1;
        uint64_t number = last - gw_prng_below(&prng, reach);
        if (number < first || last < first)
            continue;
        enum gw_auth_verdict expected = GW_AUTH_GENUINE;
        if (number + GW_AUTH_WINDOW <= newest)
            expected = GW_AUTH_OLD;
        else if (came[number % HISTORY])
            expected = GW_AUTH_REPEATED;
        assert_int_equal(
            open_packet(&ends.responder, &number, sizeof(number), out[number % HISTORY]), expected);
        verdicts[expected]++;
        came[number % HISTORY] = true;
        newest = number > newest ? number : newest;
    }
    assert_true(newest > turn + ROUNDS / 4);
    assert_true(verdicts[GW_AUTH_GENUINE] > 1000 && verdicts[GW_AUTH_REPEATED] > 1000);
    assert_true(verdicts[GW_AUTH_OLD] > 1000);
    free(came);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tag_seal__is_as_the_standards_say),
        cmocka_unit_test(tag_seal__pieces_do_not_matter),
        cmocka_unit_test(tag_open__takes_both_ways),
        cmocka_unit_test(tag_open__refuses_each_flipped_bit),
        cmocka_unit_test(tag_init__every_session_has_its_own_keys),
        cmocka_unit_test(tag_open__knows_a_window),
        cmocka_unit_test(tag_open__forgery_changes_nothing),
        cmocka_unit_test(tag_open__survives_a_long_loss),
        cmocka_unit_test(tag_open__agrees_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
