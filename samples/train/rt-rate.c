/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-train.h"

double rt_rate_at(const struct rt_rate *rate, double position)
{
    if (!(position < rate->warm_up)) /* also where warm_up is 0 */
        return rate->base * rate->factor;
    double done = position > 0 ? position / rate->warm_up : 0;
    return rate->base * (1 + done * (rate->factor - 1));
}
