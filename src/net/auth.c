/* The protection of packets between neighbours; see auth.h. */
#include "net/auth.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"

enum {
    NUMBER_SIZE = 4, /* the code is the rest */
    WORDS = GW_AUTH_WINDOW / 64,
};

_Static_assert(GW_AUTH_SIZE == NUMBER_SIZE + crypto_onetimeauth_BYTES, "number and code");
_Static_assert(GW_AUTH_SIZE == NUMBER_SIZE + crypto_aead_chacha20poly1305_ietf_ABYTES, "likewise");
_Static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES ==
                   crypto_stream_chacha20_ietf_NONCEBYTES,
               "one nonce for both");

#define NUMBER_MAX INT64_MAX /* sent; the highest are for what a receiver takes to be before 1 */

/* Big-endian. */
static void put(uint8_t *at, uint64_t value, uint32_t size)
{
    while (size-- > 0) {
        at[size] = (uint8_t)value;
        value >>= 8;
    }
}

/* The key of what the initiator sends, or the responder. */
static void derive(const struct gw_auth_cfg *cfg, bool by_initiator, uint8_t key[32])
{
    uint8_t rest[8 + 8 + 1];
    crypto_generichash_state state;
    put(rest, cfg->initiators_cookie, 8);
    put(rest + 8, cfg->responders_cookie, 8);
    rest[16] = by_initiator;
    crypto_generichash_init(&state, cfg->encrypts ? cfg->key->secrets : cfg->key->packets,
                            GW_KEY_SIZE, 32);
    crypto_generichash_update(&state, cfg->session, GW_ATTACH_NONCE_SIZE);
    crypto_generichash_update(&state, rest, sizeof(rest));
    crypto_generichash_final(&state, key, 32);
}

void gw_auth_init(struct gw_auth *auth, const struct gw_auth_cfg *cfg)
{
    memset(auth, 0, sizeof(*auth));
    auth->encrypts = cfg->encrypts;
    derive(cfg, cfg->is_initiator, auth->tx_key);
    derive(cfg, !cfg->is_initiator, auth->rx_key);
}

static void nonce_of(uint64_t number, uint8_t nonce[crypto_stream_chacha20_ietf_NONCEBYTES])
{
    memset(nonce, 0, crypto_stream_chacha20_ietf_NONCEBYTES);
    put(nonce + 4, number, 8);
}

/* Numbers the next packet. */
static uint64_t next_number(struct gw_auth *auth)
{
    GW_ASSERT(auth->tx_last < NUMBER_MAX);
    return ++auth->tx_last;
}

static void code_of(const uint8_t key[32], uint64_t number, const struct iovec *pieces,
                    uint32_t count, uint8_t code[crypto_onetimeauth_BYTES])
{
    uint8_t nonce[crypto_stream_chacha20_ietf_NONCEBYTES];
    uint8_t once[crypto_onetimeauth_KEYBYTES];
    crypto_onetimeauth_state state;
    nonce_of(number, nonce);
    crypto_stream_chacha20_ietf(once, sizeof(once), nonce, key);
    crypto_onetimeauth_init(&state, once);
    for (uint32_t i = 0; i < count; i++)
        crypto_onetimeauth_update(&state, pieces[i].iov_base, pieces[i].iov_len);
    crypto_onetimeauth_final(&state, code);
}

void gw_auth_seal(struct gw_auth *auth, const struct iovec *pieces, uint32_t count,
                  uint8_t bytes[GW_AUTH_SIZE])
{
    uint64_t number = next_number(auth);
    put(bytes, number, NUMBER_SIZE);
    code_of(auth->tx_key, number, pieces, count, bytes + NUMBER_SIZE);
}

/* The number nearest to the newest one that has these low bits. */
static uint64_t whole_number(const struct gw_auth *auth, const uint8_t *bytes)
{
    uint32_t low = 0;
    for (uint32_t i = 0; i < NUMBER_SIZE; i++)
        low = low << 8 | bytes[i];
    return auth->rx_last + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)auth->rx_last);
}

static bool was_seen(const struct gw_auth *auth, uint64_t number)
{
    return auth->seen[number / 64 % WORDS] >> number % 64 & 1;
}

/* Remembers a number; the window moves along, and what enters it has not been seen. */
static void remember(struct gw_auth *auth, uint64_t number)
{
    uint64_t ahead = number > auth->rx_last ? number - auth->rx_last : 0;
    if (ahead >= GW_AUTH_WINDOW)
        memset(auth->seen, 0, sizeof(auth->seen));
    else
        for (uint64_t entered = auth->rx_last + 1; entered <= number; entered++)
            auth->seen[entered / 64 % WORDS] &= ~(UINT64_C(1) << entered % 64);
    auth->rx_last += ahead;
    auth->seen[number / 64 % WORDS] |= UINT64_C(1) << number % 64;
}

/* Whether a packet of this number may be taken, if its code is right. */
static enum gw_auth_verdict is_due(const struct gw_auth *auth, uint64_t number)
{
    int64_t behind = (int64_t)(auth->rx_last - number);
    if (behind >= GW_AUTH_WINDOW)
        return GW_AUTH_OLD;
    return behind >= 0 && was_seen(auth, number) ? GW_AUTH_REPEATED : GW_AUTH_GENUINE;
}

enum gw_auth_verdict gw_auth_open(struct gw_auth *auth, const struct iovec *pieces, uint32_t count,
                                  const uint8_t bytes[GW_AUTH_SIZE])
{
    uint8_t code[crypto_onetimeauth_BYTES];
    uint64_t number = whole_number(auth, bytes);
    enum gw_auth_verdict verdict = is_due(auth, number);
    if (verdict != GW_AUTH_GENUINE)
        return verdict;
    code_of(auth->rx_key, number, pieces, count, code);
    if (sodium_memcmp(code, bytes + NUMBER_SIZE, sizeof(code)) != 0)
        return GW_AUTH_FORGED;
    remember(auth, number);
    return GW_AUTH_GENUINE;
}

void gw_auth_encrypt(struct gw_auth *auth, const uint8_t *bytes, uint32_t size, uint8_t *out)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    uint64_t number = next_number(auth);
    GW_DEBUG_ASSERT(auth->encrypts && size >= GW_AUTH_CLEAR);
    if (out != bytes)
        memcpy(out, bytes, GW_AUTH_CLEAR);
    nonce_of(number, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        out + GW_AUTH_CLEAR, out + size + NUMBER_SIZE, NULL, bytes + GW_AUTH_CLEAR,
        size - GW_AUTH_CLEAR, bytes, GW_AUTH_CLEAR, NULL, nonce, auth->tx_key);
    put(out + size, number, NUMBER_SIZE);
}

enum gw_auth_verdict gw_auth_decrypt(struct gw_auth *auth, uint8_t *bytes, uint32_t size)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    uint64_t number = whole_number(auth, bytes + size);
    enum gw_auth_verdict verdict = is_due(auth, number);
    GW_DEBUG_ASSERT(auth->encrypts && size >= GW_AUTH_CLEAR);
    if (verdict != GW_AUTH_GENUINE)
        return verdict;
    nonce_of(number, nonce);
    if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(
            bytes + GW_AUTH_CLEAR, NULL, bytes + GW_AUTH_CLEAR, size - GW_AUTH_CLEAR,
            bytes + size + NUMBER_SIZE, bytes, GW_AUTH_CLEAR, nonce, auth->rx_key) != 0)
        return GW_AUTH_FORGED;
    remember(auth, number);
    return GW_AUTH_GENUINE;
}
