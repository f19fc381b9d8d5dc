"""What a person is shown or sent: reports, charts, the failed-task report."""
