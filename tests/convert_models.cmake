# cmake -DCONVERT=... -DOUT=... -DDATA=... -DSHARED=... -P convert_models.cmake
# Converts tests/data/tiny, and en-de where its checkpoint is there, to float32 and int8.
file(MAKE_DIRECTORY ${OUT})
foreach(model tiny en-de)
  set(source ${DATA}/${model})
  if(NOT EXISTS ${source}/model.safetensors)
    set(source ${SHARED}/models/${model})
  endif()
  if(NOT EXISTS ${source}/model.safetensors)
    message("skipped: ${source} is not here: tests of ${model} will be skipped")
    continue()
  endif()
  foreach(quantize none int8)
    set(out ${OUT}/${model}-${quantize}.dgm)
    if(${CONVERT} IS_NEWER_THAN ${out})  # true as well where out does not exist
      execute_process(COMMAND ${CONVERT} --quiet --quantize ${quantize} ${source} ${out} COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
endforeach()
