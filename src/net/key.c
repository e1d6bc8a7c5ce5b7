/* Keys of jobs; see key.h. */
#include "net/key.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum {
    FILE_MAX = 65536,
};

int gw_key_setup(void)
{
    return sodium_init() < 0 ? GW_ERR_SYSTEM : GW_OK;
}

static void hash(void *out, size_t out_size, const void *in, size_t size)
{
    crypto_generichash(out, out_size, in, size, NULL, 0);
}

void gw_key_from_text(const void *text, size_t size, struct gw_key *key)
{
    uint8_t id[16];
    hash(key->bytes, sizeof(key->bytes), text, size);
    hash(id, sizeof(id), key->bytes, sizeof(key->bytes));
    memcpy(&key->id, id, sizeof(key->id));
}

int gw_key_from_file(const char *path, struct gw_key *key, char *error)
{
    static const char *const empty = "the key is empty";
    char text[FILE_MAX];
    FILE *file = fopen(path, "rb");
    if (!file)
        return gw_net_fail(error, GW_ERR_INVALID, "cannot read key file %s: %s", path,
                           strerror(errno));
    size_t size = fread(text, 1, sizeof(text), file);
    bool is_whole = !ferror(file) && fgetc(file) == EOF;
    fclose(file);
    if (size == 0 || !is_whole)
        return gw_net_fail(error, GW_ERR_INVALID, "key file %s: %s", path,
                           size ? "longer than 64 KiB, or not readable" : empty);
    gw_key_from_text(text, size, key);
    sodium_memzero(text, sizeof(text));
    return GW_OK;
}

uint32_t gw_key_job(const struct gw_key *key, const char *name)
{
    uint32_t numbers[4];
    crypto_generichash((uint8_t *)numbers, sizeof(numbers), (const uint8_t *)name, strlen(name),
                       key->bytes, sizeof(key->bytes));
    return numbers[0] ? numbers[0] : 1;
}

uint32_t gw_key_address(const char *text)
{
    uint32_t numbers[4];
    hash(numbers, sizeof(numbers), text, strlen(text));
    return numbers[0] ? numbers[0] : 1;
}

static void code_of(const struct gw_key *key, const uint8_t *bytes, uint8_t *code)
{
    crypto_generichash(code, GW_ATTACH_CODE_SIZE, bytes, GW_ATTACH_SIGNED, key->bytes,
                       sizeof(key->bytes));
}

void gw_key_sign(const struct gw_key *key, uint8_t bytes[GW_ATTACH_SIZE])
{
    code_of(key, bytes, bytes + GW_ATTACH_SIGNED);
}

bool gw_key_is_genuine(const struct gw_key *key, const uint8_t bytes[GW_ATTACH_SIZE])
{
    uint8_t code[GW_ATTACH_CODE_SIZE];
    code_of(key, bytes, code);
    return sodium_memcmp(code, bytes + GW_ATTACH_SIGNED, sizeof(code)) == 0;
}

void gw_key_proof(const uint8_t secret[32], const struct gw_sock_addr *from,
                  const uint8_t session[GW_ATTACH_NONCE_SIZE], uint64_t period,
                  uint8_t proof[GW_ATTACH_NONCE_SIZE])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, secret, 32, GW_ATTACH_NONCE_SIZE);
    crypto_generichash_update(&state, (const uint8_t *)&from->storage, from->length);
    crypto_generichash_update(&state, session, GW_ATTACH_NONCE_SIZE);
    crypto_generichash_update(&state, (const uint8_t *)&period, sizeof(period));
    crypto_generichash_final(&state, proof, GW_ATTACH_NONCE_SIZE);
}

bool gw_key_is_same(const void *a, const void *b, size_t size)
{
    return sodium_memcmp(a, b, size) == 0;
}

void gw_key_random(void *bytes, size_t size)
{
    randombytes_buf(bytes, size);
}

uint32_t gw_key_random32(void)
{
    uint32_t number;
    gw_key_random(&number, sizeof(number));
    return number ? number : 1;
}
