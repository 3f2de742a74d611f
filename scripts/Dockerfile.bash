# A provisioner in bash: static programs of Debian and this project, and one script.
# Build context: provision, and bin with bash, busybox, flex and whatever else the script needs, such as kubectl.
FROM scratch
COPY bin /bin
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY provision /provision
ENV PATH=/bin
USER 65532:65532
ENTRYPOINT ["/provision"]
