"""What several benches use, and is no bench itself: servers, pages, labs, samples, plots."""
