/* A user of an installed library. */
#include <stdio.h>

#include <metaroce.h>

int main(void)
{
    mr_endpoint_config config;
    if (mr_endpoint_config_default(&config) != MR_OK || config.payload_bytes != 4096)
        return 1;
    printf("consumer: an endpoint takes %lu bytes\n",
           (unsigned long)mr_endpoint_size(MR_PROFILE_SMALL, 2));
    return mr_endpoint_size(MR_PROFILE_SMALL, 2) == 0;
}
