# The service in a container, built from the wheel:
#   python -m build --wheel && docker build -t unmask .
#   docker run -p 8000:8000 -e UNMASK_KEYS=a-long-key -v $PWD/runs:/runs unmask /runs/bert /runs/gpt2
FROM python:3.12-slim
COPY dist/*.whl /tmp/wheel/
# the wheels of torch for a CPU; for a GPU, leave out --extra-index-url
RUN wheel="$(ls /tmp/wheel/*.whl)" \
    && pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu "${wheel}[serve,fast,search]" \
    && rm -r /tmp/wheel \
    && useradd --create-home unmask
USER unmask
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=3)"]
# other machines reach it, so keys are needed: UNMASK_KEYS, or --keys FILE
ENTRYPOINT ["unmask", "serve", "--host", "0.0.0.0"]
