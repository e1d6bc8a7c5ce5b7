/* The tag of packets between neighbours; see tag.h. */
#include "net/udp/tag.h"

#include <sodium.h>
#include <string.h>

enum {
    NUMBER_SIZE = 4, /* the code is the rest */
    WORDS = GW_TAG_WINDOW / 64,
};

_Static_assert(GW_TAG_SIZE == NUMBER_SIZE + crypto_onetimeauth_BYTES, "number and code");

/* Big-endian. */
static void put(uint8_t *at, uint64_t value, uint32_t size)
{
    while (size-- > 0) {
        at[size] = (uint8_t)value;
        value >>= 8;
    }
}

/* The key of what the initiator sends, or the responder. */
static void derive(const struct gw_tag_cfg *cfg, bool by_initiator, uint8_t key[32])
{
    uint8_t rest[8 + 8 + 1];
    crypto_generichash_state state;
    put(rest, cfg->initiators_cookie, 8);
    put(rest + 8, cfg->responders_cookie, 8);
    rest[16] = by_initiator;
    crypto_generichash_init(&state, cfg->key->bytes, sizeof(cfg->key->bytes), 32);
    crypto_generichash_update(&state, cfg->session, GW_ATTACH_NONCE_SIZE);
    crypto_generichash_update(&state, rest, sizeof(rest));
    crypto_generichash_final(&state, key, 32);
}

void gw_tag_init(struct gw_tag *tag, const struct gw_tag_cfg *cfg)
{
    memset(tag, 0, sizeof(*tag));
    derive(cfg, cfg->is_initiator, tag->tx_key);
    derive(cfg, !cfg->is_initiator, tag->rx_key);
}

static void code_of(const uint8_t key[32], uint64_t number, const struct iovec *pieces,
                    uint32_t count, uint8_t code[crypto_onetimeauth_BYTES])
{
    uint8_t nonce[crypto_stream_chacha20_ietf_NONCEBYTES] = {0};
    uint8_t once[crypto_onetimeauth_KEYBYTES];
    crypto_onetimeauth_state state;
    put(nonce + 4, number, 8);
    crypto_stream_chacha20_ietf(once, sizeof(once), nonce, key);
    crypto_onetimeauth_init(&state, once);
    for (uint32_t i = 0; i < count; i++)
        crypto_onetimeauth_update(&state, pieces[i].iov_base, pieces[i].iov_len);
    crypto_onetimeauth_final(&state, code);
}

void gw_tag_seal(struct gw_tag *tag, const struct iovec *pieces, uint32_t count,
                 uint8_t bytes[GW_TAG_SIZE])
{
    uint64_t number = ++tag->tx_last;
    put(bytes, number, NUMBER_SIZE);
    code_of(tag->tx_key, number, pieces, count, bytes + NUMBER_SIZE);
}

/* The number nearest to the newest one that has these low bits. */
static uint64_t whole_number(const struct gw_tag *tag, const uint8_t *bytes)
{
    uint32_t low = 0;
    for (uint32_t i = 0; i < NUMBER_SIZE; i++)
        low = low << 8 | bytes[i];
    return tag->rx_last + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)tag->rx_last);
}

static bool was_seen(const struct gw_tag *tag, uint64_t number)
{
    return tag->seen[number / 64 % WORDS] >> number % 64 & 1;
}

/* Remembers a number; the window moves along, and what enters it has not been seen. */
static void remember(struct gw_tag *tag, uint64_t number)
{
    uint64_t ahead = number > tag->rx_last ? number - tag->rx_last : 0;
    if (ahead >= GW_TAG_WINDOW)
        memset(tag->seen, 0, sizeof(tag->seen));
    else
        for (uint64_t entered = tag->rx_last + 1; entered <= number; entered++)
            tag->seen[entered / 64 % WORDS] &= ~(UINT64_C(1) << entered % 64);
    tag->rx_last += ahead;
    tag->seen[number / 64 % WORDS] |= UINT64_C(1) << number % 64;
}

enum gw_tag_verdict gw_tag_open(struct gw_tag *tag, const struct iovec *pieces, uint32_t count,
                                const uint8_t bytes[GW_TAG_SIZE])
{
    uint8_t code[crypto_onetimeauth_BYTES];
    uint64_t number = whole_number(tag, bytes);
    int64_t behind = (int64_t)(tag->rx_last - number);
    if (behind >= GW_TAG_WINDOW)
        return GW_TAG_OLD;
    if (behind >= 0 && was_seen(tag, number))
        return GW_TAG_REPEATED;
    code_of(tag->rx_key, number, pieces, count, code);
    if (sodium_memcmp(code, bytes + NUMBER_SIZE, sizeof(code)) != 0)
        return GW_TAG_FORGED;
    remember(tag, number);
    return GW_TAG_GENUINE;
}
