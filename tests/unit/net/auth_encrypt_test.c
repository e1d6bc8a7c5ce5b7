/* The encryption of packets: who has the session's key gets back what was sent, once; nobody else
 * reads it, and nothing else is taken. What is said of numbers alone is in auth_test.c. */
#include "unit/net/auth_ends.h"

enum {
    PKT = 200,
    SEALED = PKT + GW_AUTH_SIZE,
};

static void fill(uint8_t *bytes)
{
    for (uint32_t i = 0; i < PKT; i++)
        bytes[i] = (uint8_t)(i * 7);
}

/* What the end makes of a packet, which stays as it is. */
static enum gw_auth_verdict judge(struct gw_auth *auth, const uint8_t *sealed, uint32_t size)
{
    uint8_t bytes[SEALED];
    memcpy(bytes, sealed, size);
    return gw_auth_decrypt(auth, bytes, size - GW_AUTH_SIZE);
}

/* Against BLAKE2b of Python's hashlib, and ChaCha20-Poly1305 written from RFC 8439 there, which
 * agrees with the example of section 2.8.2. */
static void encrypt__is_as_the_standards_say(void **state)
{
    (void)state;
    static const char text[] = "Twelve clear, then what is secret.";
    static const uint8_t first[] = "\x7a\x62\xb9\x61\x5e\x44\x60\x8b\x29\x14\xe5\x34\x2b\xb7\x96"
                                   "\x9e\x35\x70\x5d\x81\x03\x1d\x00\x00\x00\x01\x90\x07\xe5\xfc"
                                   "\x4f\xe8\xb5\x20\x8d\x16\x4e\x5a\x53\x4a\xc1\xed";
    static const uint8_t second[] = "\xad\xa5\x39\x5d\x8f\xcf\xbe\x73\xf7\xe4\xe6\xba\x56\xe5\xa8"
                                    "\x82\xf5\x3f\x81\x87\xd9\x28\x00\x00\x00\x01\x9e\x9b\x96\x4c"
                                    "\xd8\x84\x12\xb7\x62\x35\xe0\x49\x58\xaa\x32\x8d";
    const uint32_t size = sizeof(text) - 1, hidden = sizeof(first) - 1;
    struct ends ends;
    uint8_t out[SEALED];
    ends_open(&ends, true);
    gw_auth_encrypt(&ends.initiator, (const uint8_t *)text, size, out);
    assert_memory_equal(out, text, GW_AUTH_CLEAR);
    assert_memory_equal(out + GW_AUTH_CLEAR, first, hidden);
    ends_skip_to(&ends, turn);
    memcpy(out, text, size); /* where it lies does not matter */
    gw_auth_encrypt(&ends.initiator, out, size, out);
    assert_memory_equal(out, text, GW_AUTH_CLEAR);
    assert_memory_equal(out + GW_AUTH_CLEAR, second, hidden);
}

static void decrypt__gives_back_what_was_sent_once(void **state)
{
    (void)state;
    struct ends ends;
    uint8_t bytes[PKT], out[SEALED], again[SEALED];
    fill(bytes);
    ends_open(&ends, true);
    for (uint32_t size = GW_AUTH_CLEAR; size <= PKT; size++) {
        bool is_back = size % 2;
        struct gw_auth *from = is_back ? &ends.responder : &ends.initiator;
        struct gw_auth *to = is_back ? &ends.initiator : &ends.responder;
        gw_auth_encrypt(from, bytes, size, out);
        memcpy(again, out, size + GW_AUTH_SIZE);
        /* Sent back to where it comes from. */
        assert_int_not_equal(judge(from, out, size + GW_AUTH_SIZE), GW_AUTH_GENUINE);
        assert_int_equal(gw_auth_decrypt(to, out, size), GW_AUTH_GENUINE);
        assert_memory_equal(out, bytes, size);
        assert_int_equal(judge(to, again, size + GW_AUTH_SIZE), GW_AUTH_REPEATED);
    }
}

/* The same packet twice is not the same on the wire, and is nowhere as it was. */
static void encrypt__hides_what_is_behind_the_cookie(void **state)
{
    (void)state;
    struct ends ends;
    uint8_t bytes[PKT], one[SEALED], other[SEALED];
    fill(bytes);
    ends_open(&ends, true);
    gw_auth_encrypt(&ends.initiator, bytes, PKT, one);
    gw_auth_encrypt(&ends.initiator, bytes, PKT, other);
    for (uint32_t i = GW_AUTH_CLEAR; i + 4 <= PKT; i++) {
        assert_memory_not_equal(one + i, bytes + i, 4);
        assert_memory_not_equal(one + i, other + i, 4);
    }
}

static void decrypt__refuses_each_flipped_bit_and_each_cut(void **state)
{
    (void)state;
    struct ends ends;
    uint8_t bytes[PKT], out[SEALED];
    fill(bytes);
    ends_open(&ends, true);
    ends_skip_to(&ends, 12345);
    gw_auth_encrypt(&ends.initiator, bytes, PKT, out);
    struct gw_auth before = ends.responder;
    for (uint32_t bit = 0; bit < 8 * SEALED; bit++) {
        bool is_number = bit / 8 >= PKT && bit / 8 < PKT + 4;
        out[bit / 8] ^= (uint8_t)(1u << bit % 8);
        enum gw_auth_verdict verdict = judge(&ends.responder, out, SEALED);
        assert_true(verdict == GW_AUTH_FORGED || (verdict == GW_AUTH_OLD && is_number));
        out[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (uint32_t size = GW_AUTH_CLEAR + GW_AUTH_SIZE; size < SEALED; size++) {
        enum gw_auth_verdict verdict = judge(&ends.responder, out, size);
        assert_true(verdict == GW_AUTH_FORGED || verdict == GW_AUTH_OLD);
    }
    assert_memory_equal(&before, &ends.responder, sizeof(before));
    assert_int_equal(judge(&ends.responder, out, SEALED), GW_AUTH_GENUINE);
}

/* Another key, session or cookie; and a session that does not encrypt has other keys as well. */
static void init__every_session_has_its_own_keys(void **state)
{
    (void)state;
    uint8_t bytes[PKT], out[SEALED];
    fill(bytes);
    for (int what = 0; what < 6; what++) {
        struct ends ends, others;
        ends_open(&ends, true);
        ends_open(&others, true);
        others.key.secrets[31] ^= what == 1;
        others.session[15] ^= what == 2;
        others.cfg.initiators_cookie ^= what == 3;
        others.cfg.responders_cookie ^= what == 4;
        others.cfg.encrypts = what != 5;
        ends_begin(&others);
        enum gw_auth_verdict expected = what == 0 ? GW_AUTH_GENUINE : GW_AUTH_FORGED;
        gw_auth_encrypt(&ends.initiator, bytes, PKT, out);
        others.responder.encrypts = true; /* it would take it, if it could */
        assert_int_equal(judge(&others.responder, out, SEALED), expected);
        gw_auth_encrypt(&ends.responder, bytes, PKT, out);
        others.initiator.encrypts = true;
        assert_int_equal(judge(&others.initiator, out, SEALED), expected);
    }
}

/* Where 32 bits turn, and up to the last number that there is. */
static void number__goes_up_to_its_limit(void **state)
{
    (void)state;
    static const uint64_t starts[] = {0, UINT64_C(0xfffffff0), (UINT64_C(1) << 63) - 33};
    uint8_t bytes[PKT], out[32][SEALED];
    fill(bytes);
    for (size_t i = 0; i < GW_COUNT_OF(starts); i++) {
        struct ends ends;
        ends_open(&ends, true);
        ends_skip_to(&ends, starts[i]);
        for (uint32_t n = 0; n < 32; n++)
            gw_auth_encrypt(&ends.initiator, bytes, PKT, out[n]);
        assert_true(ends.initiator.tx_last == starts[i] + 32);
        for (uint32_t n = 32; n-- > 0;)
            assert_int_equal(judge(&ends.responder, out[n], SEALED), GW_AUTH_GENUINE);
        for (uint32_t n = 0; n < 32; n++)
            assert_int_equal(judge(&ends.responder, out[n], SEALED), GW_AUTH_REPEATED);
    }
}

/* The receiver who has heard nothing takes the upper half of low bits for numbers before the first,
 * which nobody has ever sent. */
static void number__none_is_before_the_first(void **state)
{
    (void)state;
    struct ends ends;
    uint8_t bytes[PKT], out[SEALED];
    fill(bytes);
    ends_open(&ends, true);
    ends.initiator.tx_last = UINT32_MAX - 1;
    gw_auth_encrypt(&ends.initiator, bytes, PKT, out);
    assert_int_equal(judge(&ends.responder, out, SEALED), GW_AUTH_FORGED);
    assert_true(ends.responder.rx_last == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encrypt__is_as_the_standards_say),
        cmocka_unit_test(decrypt__gives_back_what_was_sent_once),
        cmocka_unit_test(encrypt__hides_what_is_behind_the_cookie),
        cmocka_unit_test(decrypt__refuses_each_flipped_bit_and_each_cut),
        cmocka_unit_test(init__every_session_has_its_own_keys),
        cmocka_unit_test(number__goes_up_to_its_limit),
        cmocka_unit_test(number__none_is_before_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
