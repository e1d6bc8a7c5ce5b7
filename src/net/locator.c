/* Locators; see locator.h. */
#include "net/locator.h"

#include <netinet/in.h>
#include <string.h>

enum {
    AT_PORT = 0,
    AT_FAMILY = 2,
    AT_HOST = 4,
    FAMILY_IPV4 = 4,
    FAMILY_IPV6 = 6,
};

void gw_locator_write(const struct gw_sock_addr *addr, uint8_t bytes[GW_LOCATOR_SIZE])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr->storage;
    bool is_v6 = gw_sock_addr_is_v6(addr);
    memset(bytes, 0, GW_LOCATOR_SIZE);
    memcpy(bytes + AT_PORT, is_v6 ? &v6->sin6_port : &v4->sin_port, sizeof(v4->sin_port));
    bytes[AT_FAMILY] = is_v6 ? FAMILY_IPV6 : FAMILY_IPV4;
    if (is_v6)
        memcpy(bytes + AT_HOST, &v6->sin6_addr, sizeof(v6->sin6_addr));
    else
        memcpy(bytes + AT_HOST, &v4->sin_addr, sizeof(v4->sin_addr));
}

bool gw_locator_read(const uint8_t bytes[GW_LOCATOR_SIZE], struct gw_sock_addr *addr)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    uint8_t again[GW_LOCATOR_SIZE];
    memset(addr, 0, sizeof(*addr));
    if (bytes[AT_FAMILY] == FAMILY_IPV6) {
        memcpy(&v6.sin6_port, bytes + AT_PORT, sizeof(v6.sin6_port));
        memcpy(&v6.sin6_addr, bytes + AT_HOST, sizeof(v6.sin6_addr));
        memcpy(&addr->storage, &v6, sizeof(v6));
        addr->length = sizeof(v6);
    } else {
        memcpy(&v4.sin_port, bytes + AT_PORT, sizeof(v4.sin_port));
        memcpy(&v4.sin_addr, bytes + AT_HOST, sizeof(v4.sin_addr));
        memcpy(&addr->storage, &v4, sizeof(v4));
        addr->length = sizeof(v4);
    }
    gw_locator_write(addr, again);
    return gw_sock_addr_port(addr) != 0 && memcmp(again, bytes, GW_LOCATOR_SIZE) == 0;
}
