#include "nics.h"

#include <string.h>

mr_nic *nic_make(uint8_t background, const char *faults)
{
    mr_nic_config config;
    mr_nic *nic;
    memset(&config, 0, sizeof config);
    EXPECT(MR_OK, mr_address_ipv4(&config.addresses[0], 127, 0, 0, 1, 0));
    config.planes = 1;
    config.listen = config.background = background;
    config.faults = faults;
    EXPECT(MR_OK, mr_nic_create(&config, &nic));
    return nic;
}

void nic_connected(mr_nic *from, mr_nic *to, uint32_t *outgoing, uint32_t *incoming)
{
    mr_connection_config config;
    mr_address address;
    EXPECT(1, mr_nic_addresses(to, &address, 1));
    EXPECT(MR_OK, mr_nic_connection_config(from, &config));
    config.failure_timeout_ns = UINT64_C(3600000000000);
    EXPECT(MR_OK, mr_nic_connect(from, &address, 1, &config, MR_FOREVER, outgoing));
    /* The acceptor has it when it has heard of the initiator again. */
    while (mr_nic_accept(to, 0, incoming, NULL) != MR_OK)
        mr_nic_progress(from);
}
