# The one image of a cluster: scheduler, beat and crawl nodes differ in their command only (docker-compose.yml).
# A Python for which every package of the lock has a wheel, but jieba and zhconv, which are Python alone: no compiler.
ARG PYTHON=python:3.12.13-slim-bookworm

FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /opt/reviewloop

# First what changes seldom, so that a new version of the project reuses it.
COPY requirements-build.lock requirements-runtime.lock ./
RUN pip install --quiet --require-hashes --no-deps -r requirements-build.lock
RUN pip install --quiet --require-hashes --no-deps --no-build-isolation \
    --only-binary :all: --no-binary jieba,zhconv -r requirements-runtime.lock

COPY pyproject.toml README.md sites.yaml docker-compose.yml ./
COPY app app
COPY migrations migrations
COPY splitter splitter
COPY tasks tasks
# Editable: migrations and sites.yaml are found beside the code.
RUN pip install --quiet --no-build-isolation --no-deps --editable .
RUN pip check
RUN python -m compileall -q app tasks splitter migrations
RUN pip uninstall --quiet --yes setuptools wheel uv pip

FROM ${PYTHON}
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# What is kept from one container to the next: a volume takes its owner from this folder.
RUN useradd --system --no-create-home --uid 10001 reviewloop \
 && install --directory --owner reviewloop --mode 0700 /var/lib/reviewloop
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/reviewloop /opt/reviewloop
WORKDIR /opt/reviewloop
USER reviewloop
CMD ["reviewloop", "--help"]
