# `gmlr serve` and `gmlr annotate` in a container:
#   docker build -t gaussianmlr .
#   docker run -e GMLR_TOKEN -p 127.0.0.1:8000:8000 -v "$PWD/run:/run/model:ro" \
#     gaussianmlr serve /run/model --host 0.0.0.0
#   docker run -e GMLR_TOKEN -p 127.0.0.1:8000:8000 -v "$PWD/photos:/photos:ro" -v answers:/home/gmlr/answers \
#     gaussianmlr annotate /photos --labels sky,sea --out /home/gmlr/answers/photos --host 0.0.0.0
# A server that others can reach needs a token: export GMLR_TOKEN=... before.
# torch with CUDA takes gigabytes: --build-arg TORCH_INDEX=ADDRESS names the index of torch's CPU builds.
FROM python:3.11-slim AS build
ARG TORCH_INDEX
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /app \
 && /app/bin/pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep '^torch==' constraints.txt)" \
 && /app/bin/pip install --no-cache-dir -c constraints.txt ".[pages,images,trees,parquet,efficientnet]"

FROM python:3.11-slim
# A volume for answers begins with the owner that the folder has here.
RUN useradd --create-home gmlr && install -d -o gmlr /home/gmlr/answers
COPY --from=build /app /app
USER gmlr
WORKDIR /home/gmlr
ENV PATH=/app/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --start-period=60s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=5)"]
ENTRYPOINT ["gmlr"]
CMD ["--help"]
