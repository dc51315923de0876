delete from ticketflow.consumer_marks where instance = $1
