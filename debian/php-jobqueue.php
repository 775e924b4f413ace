mod debian/jobqueue.ini
