update ticketflow.consumer_marks set seen_at = clock_timestamp() where instance = $1
