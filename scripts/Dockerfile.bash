# A provisioner in bash: static programs of Debian, Kubernetes and this project, and one script.
# Build context: bash, busybox, flex, kubectl and provision.
FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY bash flex kubectl /bin/
COPY provision /provision
ENV PATH=/bin
USER 65532:65532
ENTRYPOINT ["/provision"]
