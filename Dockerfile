# The one image of a cluster: scheduler, beat and crawl nodes differ in their command only (docker-compose.yml).
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /opt/reviewloop

# First what changes seldom, so that a new version of the project reuses it.
COPY requirements-build.lock requirements.lock ./
RUN pip install --quiet --require-hashes -r requirements-build.lock \
 && pip install --quiet --require-hashes --no-build-isolation -r requirements.lock

COPY pyproject.toml README.md sites.yaml ./
COPY app app
COPY bench bench
COPY migrations migrations
COPY splitter splitter
COPY tasks tasks
# Editable: migrations and sites.yaml are found beside the code.
RUN pip install --quiet --no-build-isolation --no-deps --editable . \
 && python -m compileall -q app tasks splitter migrations \
 && useradd --system --no-create-home --uid 10001 reviewloop

USER reviewloop
CMD ["reviewloop", "--help"]
