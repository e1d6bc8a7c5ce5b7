/* Keys of jobs; see key.h. */
#include "net/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "core/job.h"

enum {
    FILE_MAX = 65536,
    /* The least that OWASP's Password Storage Cheat Sheet has for Argon2id in one lane. */
    STRETCH_PASSES = 2,
    STRETCH_MEMORY = 19 << 20, /* bytes */
};

int gw_key_setup(void)
{
    return sodium_init() < 0 ? GW_ERR_SYSTEM : GW_OK;
}

static void hash(void *out, size_t out_size, const void *in, size_t size)
{
    crypto_generichash(out, out_size, in, size, NULL, 0);
}

/* One key for each purpose; the numbers are part of the protocol. */
static void derive(const uint8_t root[crypto_kdf_KEYBYTES], struct gw_key *key)
{
    static const char context[crypto_kdf_CONTEXTBYTES + 1] = "gradwire";
    uint8_t id[16];
    crypto_kdf_derive_from_key(key->attach, sizeof(key->attach), 1, context, root);
    crypto_kdf_derive_from_key(key->jobs, sizeof(key->jobs), 2, context, root);
    crypto_kdf_derive_from_key(key->packets, sizeof(key->packets), 3, context, root);
    crypto_kdf_derive_from_key(id, sizeof(id), 4, context, root);
    memcpy(&key->id, id, sizeof(key->id));
}

void gw_key_from_text(const void *text, size_t size, struct gw_key *key)
{
    uint8_t root[crypto_kdf_KEYBYTES];
    hash(root, sizeof(root), text, size);
    derive(root, key);
}

/* Returns 0 or GW_ERR_NO_MEMORY. */
static int stretch(const char *text, size_t size, struct gw_key *key)
{
    static const uint8_t salt[crypto_pwhash_SALTBYTES] = "gradwire job key";
    uint8_t root[crypto_kdf_KEYBYTES];
    if (crypto_pwhash(root, sizeof(root), text, size, salt, STRETCH_PASSES, STRETCH_MEMORY,
                      crypto_pwhash_ALG_ARGON2ID13) != 0)
        return GW_ERR_NO_MEMORY;
    derive(root, key);
    sodium_memzero(root, sizeof(root));
    return GW_OK;
}

/* Whether others than its owner may read or write a file. */
static bool is_exposed(const struct stat *file)
{
    bool is_ours = file->st_uid == geteuid();
    return file->st_mode & S_IRWXO || (is_ours && file->st_mode & S_IRWXG);
}

int gw_key_read(const char *path, bool is_shared, char *text, size_t size, char *error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (!file || fstat(fd, &status) != 0) {
        if (fd >= 0)
            close(fd);
        return gw_net_fail(error, GW_ERR_INVALID, "cannot read the secret in %s: %s", path,
                           strerror(errno));
    }
    bool is_refused = !is_shared && is_exposed(&status);
    size_t used = is_refused ? 0 : fread(text, 1, size, file);
    bool is_whole = !ferror(file) && (is_refused || fgetc(file) == EOF);
    fclose(file);
    if (is_refused)
        return gw_net_fail(error, GW_ERR_INVALID, "%s: others may read it (mode %04o)", path,
                           (unsigned)status.st_mode & 07777);
    if (used == 0 || !is_whole)
        return gw_net_fail(error, GW_ERR_INVALID, "%s: the secret is %s", path,
                           used ? "too long, or not readable" : "empty");
    return (int)used;
}

int gw_key_from_file(const char *path, bool is_shared, struct gw_key *key, char *error)
{
    char text[FILE_MAX];
    int size = gw_key_read(path, is_shared, text, sizeof(text), error);
    if (size < 0)
        return size;
    int code = stretch(text, (size_t)size, key);
    sodium_memzero(text, sizeof(text));
    return code ? gw_net_fail(error, code, "no memory to stretch the key of %s", path) : GW_OK;
}

uint32_t gw_key_job(const struct gw_key *key, const char *name)
{
    uint32_t numbers[4];
    crypto_generichash((uint8_t *)numbers, sizeof(numbers), (const uint8_t *)name, strlen(name),
                       key->jobs, sizeof(key->jobs));
    return gw_job_number((uint32_t)key->id, numbers[0]);
}

bool gw_key_has_job(const struct gw_key *key, uint32_t number)
{
    return gw_job_key(number) == gw_job_key(gw_job_number((uint32_t)key->id, 0));
}

/* The address of a half that a number stands for. */
static uint32_t address_of(uint32_t number, bool is_fabric)
{
    number &= ~GW_KEY_FABRIC;
    return is_fabric ? number | GW_KEY_FABRIC : number ? number : 1;
}

uint32_t gw_key_address(const char *text, bool is_fabric)
{
    uint32_t numbers[4];
    hash(numbers, sizeof(numbers), text, strlen(text));
    return address_of(numbers[0], is_fabric);
}

uint32_t gw_key_random_address(void)
{
    return address_of(gw_key_random32(), false);
}

static void code_of(const struct gw_key *key, const uint8_t *bytes, uint8_t *code)
{
    crypto_generichash(code, GW_ATTACH_CODE_SIZE, bytes, GW_ATTACH_SIGNED, key->attach,
                       sizeof(key->attach));
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
