/* SPDX-License-Identifier: MIT
 *
 * The contract on the memory driver.
 */
#include "contract/contract.h"

static const char *fresh_dsn(void)
{
    return "memory:";
}

int main(void)
{
    static const contract_driver memory = {
        .name = "contract: memory",
        .fresh_dsn = fresh_dsn,
        .features = JOBQ_FEATURE_PRIORITY | JOBQ_FEATURE_UNIQUE | JOBQ_FEATURE_ATOMIC_BATCH |
                    JOBQ_FEATURE_DUE_ORDER | JOBQ_FEATURE_HOST_CLOCK,
    };

    return contract_main(&memory, NULL, 0);
}
