/*
 * Micro benchmarks of the datapath: the authentication and the encryption of a packet that fills an
 * Ethernet frame.
 */
#include "micro.h"

#include "base/assert.h"
#include "net/auth.h"

enum {
    PKT = 1452, /* header and payload, of 1500 with IPv6 and UDP */
    HDR = 44,
};

struct auth_bench {
    struct gw_auth tx, rx;
    uint8_t bytes[PKT];
    uint8_t sealed[PKT + GW_AUTH_SIZE];
};

static void seal(struct auth_bench *b, uint8_t *auth)
{
    struct iovec pieces[] = {{b->bytes, HDR}, {b->bytes + HDR, PKT - HDR}};
    gw_auth_seal(&b->tx, pieces, 2, auth);
}

static void seal_run(void *state, uint64_t count)
{
    struct auth_bench *b = state;
    uint8_t auth[GW_AUTH_SIZE];
    for (uint64_t i = 0; i < count; i++) {
        seal(b, auth);
        gw_bench_sink += auth[GW_AUTH_SIZE - 1];
    }
}

static void seal_open_run(void *state, uint64_t count)
{
    struct auth_bench *b = state;
    struct iovec pieces[] = {{b->bytes, HDR}, {b->bytes + HDR, PKT - HDR}};
    uint8_t auth[GW_AUTH_SIZE];
    for (uint64_t i = 0; i < count; i++) {
        seal(b, auth);
        enum gw_auth_verdict verdict = gw_auth_open(&b->rx, pieces, 2, auth);
        GW_ASSERT(verdict == GW_AUTH_GENUINE);
    }
}

static void encrypt_run(void *state, uint64_t count)
{
    struct auth_bench *b = state;
    for (uint64_t i = 0; i < count; i++) {
        gw_auth_encrypt(&b->tx, b->bytes, PKT, b->sealed);
        gw_bench_sink += b->sealed[PKT + GW_AUTH_SIZE - 1];
    }
}

static void encrypt_decrypt_run(void *state, uint64_t count)
{
    struct auth_bench *b = state;
    for (uint64_t i = 0; i < count; i++) {
        gw_auth_encrypt(&b->tx, b->bytes, PKT, b->sealed);
        enum gw_auth_verdict verdict = gw_auth_decrypt(&b->rx, b->sealed, PKT);
        GW_ASSERT(verdict == GW_AUTH_GENUINE);
    }
}

static void add_auth(struct gw_bench_suite *suite, const char *name, gw_bench_run *run,
                     bool encrypts)
{
    static const uint8_t session[GW_ATTACH_NONCE_SIZE];
    struct auth_bench *b = gw_bench_take(sizeof(*b));
    struct gw_key key;
    gw_key_from_text("", 0, &key);
    struct gw_auth_cfg cfg = {
        .key = &key, .session = session, .is_initiator = true, .encrypts = encrypts};
    gw_auth_init(&b->tx, &cfg);
    cfg.is_initiator = false;
    gw_auth_init(&b->rx, &cfg);
    gw_bench_add(suite, name, run, b);
}

void gw_bench_add_net(struct gw_bench_suite *suite)
{
    int error = gw_key_setup();
    GW_ASSERT(error == 0);
    add_auth(suite, "authentication, 1452 bytes: seal", seal_run, false);
    add_auth(suite, "authentication, 1452 bytes: seal + open", seal_open_run, false);
    add_auth(suite, "encryption, 1452 bytes: encrypt", encrypt_run, true);
    add_auth(suite, "encryption, 1452 bytes: encrypt + decrypt", encrypt_decrypt_run, true);
}
