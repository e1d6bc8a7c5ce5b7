/*
 * Keys of jobs, and what is computed with them: who holds the key of a job may attach to its
 * neighbours. All of it is libsodium's BLAKE2b.
 */
#ifndef GW_NET_KEY_H
#define GW_NET_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/net_error.h"
#include "net/sock_addr.h"
#include "wire/attach.h"

struct gw_key {
    uint8_t bytes[32];
    uint64_t id; /* names it without giving it away */
};

/* Must come before everything below, and before random numbers. Returns 0 or GW_ERR_SYSTEM. */
int gw_key_setup(void);

/* The key that a text stands for; the empty text is the key of those who have none. */
void gw_key_from_text(const void *text, size_t size, struct gw_key *key);

/* The key that a file's contents stand for. Returns 0, or GW_ERR_INVALID with `error` filled. */
int gw_key_from_file(const char *path, struct gw_key *key, char *error);

/* The number of the job `name` among those with this key; never 0. */
uint32_t gw_key_job(const struct gw_key *key, const char *name);

/* An address that stays the same as long as `text` does; never 0. */
uint32_t gw_key_address(const char *text);

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
