/*
 * Keys of jobs, and what is computed with them: who holds the key of a job may attach to its
 * neighbours.
 *
 * The text of a key file is stretched once (Argon2id, RFC 9106), so that each guess of who has
 * recorded a message costs tens of milliseconds and 19 MiB. From what comes of it one key derives
 * for each purpose, and the name of the key: BLAKE2b with a number for the purpose (libsodium's
 * crypto_kdf), so that nothing made for one tells of another. All ends must come to the same
 * without a word, so the salt is the same everywhere: who shares a weak text is found by one table,
 * and a key must be random.
 */
#ifndef GW_NET_KEY_H
#define GW_NET_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/net_error.h"
#include "net/sock_addr.h"
#include "wire/attach.h"

enum {
    GW_KEY_SIZE = 32,
};

struct gw_key {
    uint8_t attach[GW_KEY_SIZE];  /* makes the codes of the attach protocol, */
    uint8_t jobs[GW_KEY_SIZE];    /* the numbers of jobs, */
    uint8_t packets[GW_KEY_SIZE]; /* and the keys of a session's packets */
    uint64_t id;                  /* names it without giving it away */
};

/* Must come before everything below, and before random numbers. Returns 0 or GW_ERR_SYSTEM. */
int gw_key_setup(void);

/* The key that a text stands for, not stretched: for texts that nobody has to guess. The empty text
 * is the key of those who have none. */
void gw_key_from_text(const void *text, size_t size, struct gw_key *key);

/*
 * The key that a file's contents stand for, stretched. A file that others may read is refused,
 * unless `is_shared` says that this is meant: one that all may read or write, or, as ssh has it, of
 * ours also one that its group may. Returns 0, GW_ERR_INVALID or GW_ERR_NO_MEMORY, with `error`
 * filled.
 */
int gw_key_from_file(const char *path, bool is_shared, struct gw_key *key, char *error);

/* Reads a secret from such a file, at most `size` bytes to `text`. Returns how many, or as above.
 */
int gw_key_read(const char *path, bool is_shared, char *text, size_t size, char *error);

/*
 * The number of the job `name` with this key; never 0. Some of its bits are of the key's name
 * (core/job.h), so that nobody can say it who has another key; the others nobody can guess.
 */
uint32_t gw_key_job(const struct gw_key *key, const char *name);

/* Whether the number can be that of a job with this key. Of two keys for which this holds at the
 * same time, the holder of one could say the numbers of the other's jobs. */
bool gw_key_has_job(const struct gw_key *key, uint32_t number);

/*
 * Addresses on the overlay; never 0. Those of the fabric's own switches and servers have a half of
 * their own: anybody can compute them, so only who has a key of switches may attach with one.
 */
#define GW_KEY_FABRIC UINT32_C(0x80000000)

/* An address that stays the same as long as `text` does; of the fabric's half, or of the other. */
uint32_t gw_key_address(const char *text, bool is_fabric);

/* A random one of the other half. */
uint32_t gw_key_random_address(void);

/* Writes the code of authentication into an encoded message. */
void gw_key_sign(const struct gw_key *key, uint8_t bytes[GW_ATTACH_SIZE]);
bool gw_key_is_genuine(const struct gw_key *key, const uint8_t bytes[GW_ATTACH_SIZE]);

/* The proof that a session from an address must give in the period `period`. */
void gw_key_proof(const uint8_t secret[32], const struct gw_sock_addr *from,
                  const uint8_t session[GW_ATTACH_NONCE_SIZE], uint64_t period,
                  uint8_t proof[GW_ATTACH_NONCE_SIZE]);

/* Whether two secrets are the same; takes as long whether they are or not. */
bool gw_key_is_same(const void *a, const void *b, size_t size);

/* Random bytes that nobody can guess. */
void gw_key_random(void *bytes, size_t size);

/* Such a number, and never 0. */
uint32_t gw_key_random32(void);

#endif
