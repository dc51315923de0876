select floor, truncated,
  ticketflow.uuid_v7_floor(clock_timestamp() + make_interval(secs => $1)) as ceiling
from ticketflow.receipt_floor
